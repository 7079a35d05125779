#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

fn charge() -> Result<u64, Error> {
    Ok(1)
}

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> Result<(), Error> {
    phase!("charge", charge);
    Ok(())
}

fn main() {
    let _ = job(1);
}
