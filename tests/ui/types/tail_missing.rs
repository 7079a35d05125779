#![allow(unused)]

use idem_runtime::{Error, Key, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Error> {
    let _ = Key::from_text("5")?;
    drop(user_id);
}

fn main() {}
