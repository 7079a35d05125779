#![allow(unused)] // offences: 5

use idem_runtime::{Error, idempotent};

#[idempotent(key = "<usr_id><month>/{user_id}")]
async fn job(user_id: u64, month: String) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1, String::new());
}
