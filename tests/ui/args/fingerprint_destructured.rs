#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", fingerprint = (x))]
async fn job(user_id: u64, (x, y): (u8, u8)) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, (2, 3));
}
