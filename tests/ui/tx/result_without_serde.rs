#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

struct Receipt;

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> Result<Receipt, Error> {
    Ok(Receipt)
}

fn main() {}
