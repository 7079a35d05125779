#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job<T, I: Into<T>>(user_id: u64, item: I) -> Result<(), Error> {
    drop(item.into());
    Ok(())
}

fn main() {
    let _ = job::<u64, u8>(1, 6);
}
