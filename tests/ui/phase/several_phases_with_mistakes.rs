#![allow(unused)] // offences: 2

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("Charge", async { Ok(user_id) });
    phase!("mail", async { Ok(user_id) });
    phase!("receipt", ttl = "1h", async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
