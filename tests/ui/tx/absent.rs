#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64) -> Result<u64, Error> {
    Ok(user_id)
}

fn main() {
    let _ = job(1);
}
