#![allow(unused)]

use idem_runtime::{Error, Stored, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job<T: Stored + Default>(user_id: u64) -> Result<T, Error> {
    Ok(T::default())
}

fn main() {
    let _ = job::<u64>(1);
}
