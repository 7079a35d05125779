#![allow(unused)] // offences: 2

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<amount>:<at>")]
async fn job(amount: f64, at: std::time::SystemTime) -> Result<(), Error> {
    Ok(())
}

fn main() {}
