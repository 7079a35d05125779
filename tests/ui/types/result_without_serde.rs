#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Receipt {
    user_id: u64,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<Receipt, Error> {
    Ok(Receipt { user_id })
}

fn main() {}
