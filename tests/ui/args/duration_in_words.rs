#![allow(unused)] // offences: 2

use idem_runtime::{Error, OnError, idempotent};

#[idempotent(key = "billing:<user_id>", stale_after = "2 minutes", wait_for = "10 sec", on_busy = "wait")]
async fn job(user_id: u64, month: String) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, String::new());
}
