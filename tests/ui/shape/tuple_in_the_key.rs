#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job((user_id, month): (u64, String)) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job((1, String::new()));
}
