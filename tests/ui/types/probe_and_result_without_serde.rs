#![allow(unused)]

use idem_runtime::{Error, Probe, idempotent};

struct Receipt;

#[idempotent(key = "billing:<user_id>", on_stale = probe(was_charged))]
async fn job(user_id: u64) -> Result<Receipt, Error> {
    Ok(Receipt)
}

async fn was_charged(_: &u64) -> Probe<Receipt> {
    Probe::Unknown
}

fn main() {}
