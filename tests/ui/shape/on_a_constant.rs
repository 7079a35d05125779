#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
const JOB: u8 = 1;

fn main() {
    let _ = JOB;
}
