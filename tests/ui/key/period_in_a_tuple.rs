#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<month.0>", ttl = "24h")]
async fn job(month: (u8, u8)) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job((1, 1));
}
