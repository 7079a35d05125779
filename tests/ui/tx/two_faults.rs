#![allow(unused)] // offences: 2

use idem_runtime::{Error, idempotent};

struct Receipt;

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut u8) -> Result<Receipt, Error> {
    Ok(Receipt)
}

fn main() {}
