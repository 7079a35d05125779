#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct UserId(u64);

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: UserId) -> Result<(), Error> {
    Ok(())
}

fn main() {}
