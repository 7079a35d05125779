#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job<T: std::fmt::Display>(user_id: T) -> Result<(), Error> {
    Ok(())
}

fn main() {}
