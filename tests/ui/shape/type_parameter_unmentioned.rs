#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job<T: Default>(user_id: u64) -> Result<(), Error> {
    drop(T::default());
    Ok(())
}

fn main() {
    let _ = job::<u64>(1);
}
