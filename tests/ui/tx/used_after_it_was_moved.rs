#![allow(unused)]

use idem_runtime::idempotent;
use sqlx::{Postgres, Transaction};

async fn keep<T>(tx: T) {}

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> anyhow::Result<u64> {
    keep(tx).await;
    sqlx::query("DELETE FROM holds").execute(&mut **tx).await?;
    Ok(user_id)
}

fn main() {}
