#![allow(unused)]

use idem_runtime::idempotent;

struct Declined;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Declined> {
    if user_id == 0 { Err(Declined) } else { Ok(user_id) }
}

fn main() {}
