#![allow(unused)] // offences: 3

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
union Bits {
    user_id: u64,
}

#[idempotent(key = "billing:<user_id>")]
macro_rules! job {
    () => {};
}

#[idempotent(key = "billing:<user_id>")]
extern crate core;

fn main() {
    let _ = Bits { user_id: 1 };
}
