#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>:<billing_month>", ttl = "24h")]
async fn job(user_id: u64, billing_month: String) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, String::new());
}
