#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<year>:<day>", ttl = "24h")]
async fn job(year: u16, day: u8) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, 1);
}
