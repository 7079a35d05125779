#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Error> {
    if user_id == 0 {
        return 5;
    }
    Ok(user_id)
}

fn main() {}
