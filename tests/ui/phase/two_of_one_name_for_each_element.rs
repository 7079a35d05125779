#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    for line in [1, 2] {
        phase!("charge", each = <line>, async { Ok(line) });
    }
    phase!("charge", each = <user_id>, async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
