#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    if user_id > 1 {
        phase!("charge", async { Ok(user_id) });
    } else {
        phase!("charge", async { Ok(user_id + 1) });
    }
    Ok(())
}

fn main() {
    let _ = job(1);
}
