#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional", on_stale = probe(was_charged))]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> Result<u64, Error> {
    Ok(user_id)
}

fn call(tx: &mut Transaction<'_, Postgres>) {
    let _ = job(1, tx);
}

fn main() {}
