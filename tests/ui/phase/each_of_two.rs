#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

struct Line {
    id: u64,
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    for line in [Line { id: user_id }] {
        phase!("line", each = <line.id>:<user_id>, async { Ok(line.id) });
    }
    Ok(())
}

fn main() {
    let _ = job(1);
}
