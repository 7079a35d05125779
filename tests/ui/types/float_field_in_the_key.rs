#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Order {
    total: f64,
}

#[idempotent(key = "billing:<order.total>")]
async fn job(order: &Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
