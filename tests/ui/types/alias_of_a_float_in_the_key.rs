#![allow(unused)]

use idem_runtime::{Error, idempotent};

type Amount = f64;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: Amount) -> Result<(), Error> {
    Ok(())
}

fn main() {}
