#![allow(unused)]

use idem_runtime::{Error, OnError, idempotent};

#[idempotent(key = "billing:<user_id>", on_error = judge)]
async fn job(user_id: u64) -> Result<(), Error> {
    Ok(())
}

fn judge(_: &str) -> OnError {
    OnError::Hold
}

fn main() {}
