#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Error> {
    let list = vec![user_id, no_such_macro!()];
    Ok(list[0])
}

fn main() {
    let _ = job(1);
}
