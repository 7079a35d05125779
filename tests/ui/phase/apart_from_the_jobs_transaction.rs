#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};
use sqlx::{Sqlite, Transaction};

#[idempotent(key = "billing:<user_id>", mode = "transactional", tx = connection)]
async fn job(user_id: u64, connection: &mut Transaction<'_, Sqlite>) -> Result<(), Error> {
    phase!("charge", async { Ok(user_id) });
    phase!("mail", mode = "transactional", tx = connection, async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job;
}
