#![allow(unused)] // offences: 4

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
const fn job<T>((user_id, month): (u64, u8)) -> Result<&'static str, Error> {
    Ok("x")
}

fn main() {
    let _ = job::<u8>((1, 6));
}
