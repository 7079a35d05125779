#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
trait Job {
    fn charge(&self, user_id: u64) -> Result<(), Error>;
}

fn main() {}
