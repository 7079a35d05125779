#![allow(unused)]

use std::pin::Pin;

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + Sync>> {
    Box::pin(async move { Ok(user_id) })
}

fn main() {
    let _ = job(1);
}
