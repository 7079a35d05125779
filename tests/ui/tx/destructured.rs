#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

struct Held<'a, 'b> {
    tx: &'a mut Transaction<'b, Postgres>,
}

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job(user_id: u64, Held { tx }: Held<'_, '_>) -> Result<u64, Error> {
    Ok(user_id)
}

fn call(held: Held<'_, '_>) {
    let _ = job(1, held);
}

fn main() {}
