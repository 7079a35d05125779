#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Order {
    customer: Customer,
}

struct Customer {
    id: u64,
}

#[idempotent(key = "billing:<odrer.customer.id>")]
async fn job(order: Order) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(Order { customer: Customer { id: 1 } });
}
