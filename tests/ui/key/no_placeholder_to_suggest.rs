#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing")]
async fn job() -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job();
}
