#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> Result<u64, Error> {
    let post = async { tx };
    let held = post.await;
    sqlx::query("DELETE FROM holds").execute(&mut **tx).await.ok();
    drop(held);
    Ok(user_id)
}

fn main() {}
