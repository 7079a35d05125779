#![allow(unused)]

use idem_runtime::{Error, idempotent};

trait Job {
    fn charge(&self, user_id: u64) -> impl Future<Output = Result<u64, Error>>;
}

struct Worker;

impl Job for Worker {
    #[idempotent(key = "billing:<user_id>", key_fn = charge_key)]
    async fn charge(&self, user_id: u64) -> Result<u64, Error> {
        Ok(user_id)
    }
}

fn main() {
    let _ = Worker.charge(1);
}
