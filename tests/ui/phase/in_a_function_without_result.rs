#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

async fn helper(user_id: u64) {
    phase!("charge", async { Ok(user_id) });
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    helper(user_id).await;
    Ok(())
}

fn main() {
    let _ = job(1);
}
