#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent]
async fn job() -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job();
}
