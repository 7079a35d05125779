#![allow(unused)] // offences: 4

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", mod = "lock_first", ttl = "30x", fingerprint = (nothing), wait_for = "5s")]
async fn job(user_id: u64, month: String) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, String::new());
}
