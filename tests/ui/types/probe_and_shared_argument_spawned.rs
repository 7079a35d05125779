#![allow(unused)]

use std::cell::Cell;

use idem_runtime::{Error, KeyPart, KeyWriter, Probe, idempotent};

struct Order(Cell<u64>);

impl KeyPart for Order {
    fn write(&self, out: &mut KeyWriter) {
        out.write_display(&self.0.get());
    }
}

#[idempotent(key = "billing:<order>", on_stale = probe(was_charged))]
async fn job(order: Order) -> Result<(), Error> {
    Ok(())
}

async fn was_charged(_: &Order) -> Probe<()> {
    Probe::Unknown
}

fn main() {
    tokio::spawn(job(Order(Cell::new(1))));
}
