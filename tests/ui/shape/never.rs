#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> ! {
    panic!("{user_id}")
}

fn main() {
    let _ = job(1);
}
