#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
struct Job {
    user_id: u64,
}

fn main() {
    let _ = Job { user_id: 1 };
}
