#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<month.to_lowercase()>")]
async fn job(user_id: u64, month: String) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, String::new());
}
