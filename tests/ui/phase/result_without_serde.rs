#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

struct Receipt;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("charge", async { Ok(Receipt) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
