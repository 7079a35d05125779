#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<job_id>", allow_volatile("job_id"))]
async fn job(job_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(1);
}
