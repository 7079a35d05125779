#![allow(unused)]

use std::error::Error;

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<u64, Box<dyn Error>> {
    tokio::task::yield_now().await;
    Ok(user_id)
}

fn spawn() {
    tokio::spawn(async {
        if let Err(error) = job(1).await {
            eprintln!("{error}");
        }
    });
}

fn main() {}
