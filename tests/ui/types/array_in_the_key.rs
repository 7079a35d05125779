#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: [u8; 16]) -> Result<(), Error> {
    Ok(())
}

fn main() {}
