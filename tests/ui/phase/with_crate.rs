#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("charge", crate = crate, async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
