#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Order {
    user_id: u64,
    total: u64,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(Order { user_id, .. }: Order) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(Order { user_id: 1, total: 2 });
}
