#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Receipt {
    user_id: u64,
}

#[async_trait::async_trait]
trait Job {
    async fn charge(&self, user_id: u64) -> Result<Receipt, Error>;
}

struct Worker;

#[async_trait::async_trait]
impl Job for Worker {
    #[idempotent(key = "billing:<user_id>")]
    async fn charge(&self, user_id: u64) -> Result<Receipt, Error> {
        Ok(Receipt { user_id })
    }
}

fn main() {}
