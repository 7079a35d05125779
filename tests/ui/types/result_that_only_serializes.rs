#![allow(unused)]

use idem_runtime::idempotent;

#[derive(serde::Serialize)]
struct Receipt {
    user_id: u64,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> anyhow::Result<Receipt> {
    Ok(Receipt { user_id })
}

fn main() {}
