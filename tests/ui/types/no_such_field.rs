#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Order {
    user_id: u64,
}

#[idempotent(key = "billing:<order.user>")]
async fn job(order: Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
