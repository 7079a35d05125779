#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64, month: &str) -> Result<&str, Error> {
    Ok(month)
}

fn main() {
    let _ = job(1, "2024-06");
}
