#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing", singleton = true)]
async fn job(user_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1);
}
