#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", allow_overlap(a b, c))]
async fn job(user_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1);
}
