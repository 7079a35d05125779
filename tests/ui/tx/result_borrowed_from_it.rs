#![allow(unused)]

use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional", replay = false)]
async fn job<'t, 'c>(
    user_id: u64,
    tx: &'t mut Transaction<'c, Postgres>,
) -> Result<&'t mut Transaction<'c, Postgres>, Error> {
    Ok(tx)
}

fn main() {}
