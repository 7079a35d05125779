#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

mod bank {
    #[derive(Debug)]
    pub struct Refused;

    pub async fn charge(user_id: u64) -> Result<u64, Refused> {
        Ok(user_id)
    }
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("charge", async bank::charge(user_id));
    Ok(())
}

fn main() {
    let _ = job(1);
}
