#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Option<u64> {
    Some(user_id)
}

fn main() {}
