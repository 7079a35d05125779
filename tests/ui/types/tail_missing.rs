#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Error> {
    let _: u64 = "5".parse::<u64>().map_err(|_| Error::NotInstalled)?;
    drop(user_id);
}

fn main() {}
