#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", on_stale = was_charged)]
async fn job(user_id: u64, month: String) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, String::new());
}
