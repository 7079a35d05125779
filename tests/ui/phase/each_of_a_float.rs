#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    for share in [0.5_f64] {
        phase!("line", each = <share>, async { Ok(user_id) });
    }
    Ok(())
}

fn main() {
    let _ = job(1);
}
