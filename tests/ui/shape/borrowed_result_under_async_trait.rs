#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[async_trait::async_trait]
trait Job {
    async fn charge(&self, user_id: u64) -> Result<&str, Error>;
}

struct Worker {
    name: String,
}

#[async_trait::async_trait]
impl Job for Worker {
    #[idempotent(key = "billing:<user_id>")]
    async fn charge(&self, user_id: u64) -> Result<&str, Error> {
        let _ = user_id;
        Ok(&self.name)
    }
}

fn main() {
    let _ = Worker { name: String::new() }.charge(1);
}
