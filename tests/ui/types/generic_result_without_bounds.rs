#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job<T>(user_id: u64, value: T) -> Result<T, Error> {
    Ok(value)
}

fn main() {}
