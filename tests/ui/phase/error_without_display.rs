#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

#[derive(Debug)]
struct Refused;

impl From<Error> for Refused {
    fn from(_: Error) -> Self {
        Self
    }
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Refused> {
    phase!("charge", async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
