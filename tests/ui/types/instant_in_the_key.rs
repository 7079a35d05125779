#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: std::time::Instant) -> Result<(), Error> {
    Ok(())
}

fn main() {}
