#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", key_fn = job_key)]
async fn job(user_id: Option<u64>) -> Result<(), Error> {
    Ok(())
}

fn main() {}
