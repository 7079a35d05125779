#![allow(unused)]

use idem_runtime::{Error, Probe, idempotent, phase};

async fn find(user_id: u64) -> Probe<u64> {
    Probe::Happened(user_id)
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("charge", on_stale = probe, async { Ok(user_id) });
    Ok(())
}

fn main() {
    let _ = job(1);
}
