#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};
use sqlx::SqlitePool;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64, pool: &mut SqlitePool) -> Result<(), Error> {
    phase!("charge", mode = "transactional", tx = pool, async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job;
}
