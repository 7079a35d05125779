#![allow(unused)] // offences: 4

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(key = "billing:<usr_id>", mode = "transactional", stale_after = "90s")]
fn job(user_id: u64, tx: Transaction<'_, Postgres>) -> Result<u64, Error> {
    Ok(user_id)
}

fn call(tx: Transaction<'_, Postgres>) {
    let _ = job(1, tx);
}

fn main() {}
