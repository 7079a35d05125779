#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> Result<u64, String> {
    Ok(user_id)
}

fn main() {}
