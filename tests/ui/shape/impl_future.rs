#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> impl Future<Output = Result<u64, Error>> {
    async move { Ok(user_id) }
}

fn main() {
    let _ = job(1);
}
