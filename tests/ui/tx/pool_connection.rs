#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, pool::PoolConnection};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut PoolConnection<Postgres>) -> Result<u64, Error> {
    Ok(user_id)
}

fn main() {}
