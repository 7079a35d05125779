#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
enum Job {
    Charge,
}

fn main() {
    let _ = Job::Charge;
}
