#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) {
    let _ = user_id;
}

fn main() {
    let _ = job(1);
}
