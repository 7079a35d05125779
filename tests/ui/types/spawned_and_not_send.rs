#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Error> {
    let shared = std::rc::Rc::new(user_id);
    tokio::task::yield_now().await;
    Ok(*shared)
}

fn spawn() {
    tokio::spawn(job(1));
}

fn main() {}
