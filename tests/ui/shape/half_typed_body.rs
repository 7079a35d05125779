#![allow(unused)] // offences: 4, as many as without the attribute

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64, month: String) -> Result<u64, Error> {
    let length = month.
    Ok(user_id)
}

fn main() {
    let _ = job(1, String::new());
}
