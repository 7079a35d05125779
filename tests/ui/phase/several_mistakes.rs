#![allow(unused)] // offences: 3

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("Charge", mod = "record_after", ttl = "1h", async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
