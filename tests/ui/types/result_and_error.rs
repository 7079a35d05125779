#![allow(unused)] // offences: 2

use idem_runtime::idempotent;

struct Declined;

struct Receipt {
    user_id: u64,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<Receipt, Declined> {
    if user_id == 0 { Err(Declined) } else { Ok(Receipt { user_id }) }
}

fn main() {}
