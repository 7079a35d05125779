#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};
use sqlx::{Sqlite, Transaction};

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64, tx: &mut Transaction<'_, Sqlite>) -> Result<(), Error> {
    phase!("charge", mode = "transactional", tx = tx, || Ok(user_id));
    Ok(())
}

fn main() {
    let _ = job;
}
