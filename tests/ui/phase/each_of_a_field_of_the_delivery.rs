#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

struct Line {
    message_id: u64,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    for line in [Line { message_id: user_id }] {
        phase!("line", each = <line.message_id>, async { Ok(user_id) });
    }
    Ok(())
}

fn main() {
    let _ = job(1);
}
