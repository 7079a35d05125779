#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> u64 {
    user_id
}

fn main() {}
