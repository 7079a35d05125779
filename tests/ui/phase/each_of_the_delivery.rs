#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    for attempt in 0..2 {
        phase!("line", each = <attempt>, async { Ok(attempt) });
    }
    Ok(())
}

fn main() {
    let _ = job(1);
}
