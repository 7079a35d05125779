#![allow(unused)]

use idem_runtime::idempotent;
use sqlx::{Postgres, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> anyhow::Result<u64> {
    tx.commit().await?;
    Ok(user_id)
}

fn main() {}
