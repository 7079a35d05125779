#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Invoice {
    number: u64,
}

impl Invoice {
    #[idempotent(key = "billing:<number>")]
    async fn job(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {
    let _ = Invoice { number: 1 }.job();
}
