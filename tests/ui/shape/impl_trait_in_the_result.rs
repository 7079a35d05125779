#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<impl Iterator<Item = u64>, Error> {
    Ok(0..user_id)
}

fn main() {
    let _ = job(1);
}
