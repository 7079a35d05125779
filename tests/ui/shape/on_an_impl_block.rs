#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Job;

#[idempotent(key = "billing:<user_id>")]
impl Job {
    async fn charge(&self, user_id: u64) -> Result<(), Error> {
        let _ = user_id;
        Ok(())
    }
}

fn main() {
    let _ = Job.charge(1);
}
