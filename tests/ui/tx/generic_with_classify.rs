#![allow(unused)]

use idem_runtime::{Error, OnError, idempotent};

fn judge(_: &Error) -> OnError {
    OnError::Release
}

#[idempotent(key = "billing:<user_id>", mode = "transactional", on_error = judge)]
async fn job<T: Send>(user_id: u64, tx: &mut T) -> Result<u64, Error> {
    Ok(user_id)
}

fn main() {}
