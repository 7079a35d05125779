#![allow(unused)]

use std::rc::Rc;

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, tx: &mut Transaction<'_, Postgres>) -> Result<u64, Error> {
    let shared = Rc::new(user_id);
    std::future::ready(()).await;
    Ok(*shared)
}

async fn spawn(mut tx: Transaction<'static, Postgres>) {
    tokio::spawn(async move { job(1, &mut tx).await });
}

fn main() {}
