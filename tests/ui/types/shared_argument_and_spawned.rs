#![allow(unused)]

use std::rc::Rc;

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64, total: Rc<u64>) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    Ok(user_id + *total)
}

fn spawn() {
    tokio::spawn(job(1, Rc::new(2)));
}

fn main() {}
