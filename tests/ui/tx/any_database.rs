#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Any, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Any>) -> Result<u64, Error> {
    Ok(user_id)
}

fn main() {}
