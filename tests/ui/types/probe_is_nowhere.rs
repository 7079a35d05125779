#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>", on_stale = probe(was_charged))]
async fn job(user_id: u64) -> Result<String, Error> {
    Ok(String::new())
}

fn main() {}
