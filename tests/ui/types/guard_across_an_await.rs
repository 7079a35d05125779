#![allow(unused)]

use std::sync::{Arc, Mutex};

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64, total: Arc<Mutex<u64>>) -> Result<u64, Error> {
    let mut total = total.lock().expect("a lock");
    tokio::task::yield_now().await;
    *total += user_id;
    Ok(*total)
}

fn spawn() {
    tokio::spawn(job(1, Arc::default()));
}

fn main() {}
