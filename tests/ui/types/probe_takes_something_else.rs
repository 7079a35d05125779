#![allow(unused)]

use idem_runtime::{Error, Probe, idempotent};

#[idempotent(key = "billing:<user_id>", on_stale = probe(was_charged))]
async fn job(user_id: u64) -> Result<String, Error> {
    Ok(String::new())
}

async fn was_charged(_: &str) -> Probe<String> {
    Probe::Unknown
}

fn main() {}
