#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job<const N: usize>(user_id: u64) -> Result<usize, Error> {
    Ok(N)
}

fn main() {
    let _ = job::<3>(1);
}
