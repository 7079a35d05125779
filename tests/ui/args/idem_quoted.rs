#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", idem = "self.idem")]
async fn job(user_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1);
}
