#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[async_trait::async_trait]
trait Job {
    async fn charge(&self, pair: (u64, String)) -> Result<(), Error>;
}

struct Worker;

#[async_trait::async_trait]
impl Job for Worker {
    #[idempotent(key = "billing:<user_id>")]
    async fn charge(&self, (user_id, month): (u64, String)) -> Result<(), Error> {
        let _ = (user_id, month);
        Ok(())
    }
}

fn main() {
    let _ = Worker.charge((1, String::new()));
}
