#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<month>", ttl = "1d", allow_short_ttl = true)]
async fn job(month: u8) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1);
}
