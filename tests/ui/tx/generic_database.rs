#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Database, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job<DB: Database>(user_id: u64, tx: &mut Transaction<'_, DB>) -> Result<u64, Error> {
    Ok(user_id)
}

fn main() {}
