#![allow(unused)]

use idem_runtime::{Error, idempotent};

type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

#[idempotent(key = "billing:<user_id>")]
fn job(user_id: u64) -> BoxFuture<Result<u64, Error>> {
    Box::pin(async move { Ok(user_id) })
}

fn main() {}
