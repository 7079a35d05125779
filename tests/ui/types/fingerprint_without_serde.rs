#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Order {
    total: u64,
}

#[idempotent(key = "billing:<user_id>", fingerprint = (order))]
async fn job(user_id: u64, order: Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
