#![allow(unused)]

use idem_runtime::{Error, Probe, idempotent};

struct Billing;

impl Billing {
    #[idempotent(key = "billing:<user_id>", on_stale = probe(Self::was_charged))]
    async fn job(&self, user_id: u64) -> Result<String, Error> {
        Ok(String::new())
    }

    async fn was_charged(_: &u64) -> Probe<String> {
        Probe::Unknown
    }
}

fn main() {}
