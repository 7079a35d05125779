#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: (u64, u8)) -> Result<(), Error> {
    Ok(())
}

fn main() {}
