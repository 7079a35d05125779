#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[async_trait::async_trait]
trait Job {
    async fn charge(&self, user_id: u64) -> Result<u64, Error>;
}

struct Worker;

#[async_trait::async_trait]
impl Job for Worker {
    #[idempotent(key = "billing:<user_id>", key_fn = charge_key)]
    async fn charge(&self, user_id: u64) -> Result<u64, Error> {
        Ok(user_id)
    }
}

fn main() {
    let _ = Worker.charge(1);
}
