#![allow(unused)]

use idem_runtime::{Error, idempotent};

trait Job {
    #[idempotent(key = "billing:<user_id>")]
    async fn charge(&self, user_id: u64) -> Result<(), Error>;
}

fn call(job: impl Job) {
    let _ = job.charge(1);
}

fn main() {}
