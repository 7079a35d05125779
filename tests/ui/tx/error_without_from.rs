#![allow(unused)]

use idem_runtime::idempotent;
use sqlx::{Postgres, Transaction};

struct Declined;

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> Result<u64, Declined> {
    Ok(user_id)
}

fn main() {}
