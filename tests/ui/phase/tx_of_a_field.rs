#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};
use sqlx::{Sqlite, Transaction};

struct Bank<'a> {
    tx: &'a mut Transaction<'a, Sqlite>,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64, bank: Bank<'_>) -> Result<(), Error> {
    phase!("charge", mode = "transactional", tx = bank.tx, async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job;
}
