#![allow(unused)]

use idem_runtime::{Error, idempotent};

type Lent<'a> = Result<&'a str, Error>;

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64, month: &str) -> Lent<'_> {
    let _ = user_id;
    Ok(month)
}

fn main() {
    let _ = job(1, "2024-06");
}
