#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:[user_id]:<plan>")]
async fn job(user_id: u64, plan: u8) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, 1);
}
