#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", mode = "transactional")]
async fn job<T: Send>(user_id: u64, tx: &mut T) -> Result<u64, Error> {
    Ok(user_id)
}

fn main() {}
