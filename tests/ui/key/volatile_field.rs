#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Message {
    delivery_tag: u64,
}

#[idempotent(key = "billing:<message.delivery_tag>")]
async fn job(message: Message) -> Result<(), Error> {
    Ok(())
}

fn main() {
    let _ = job(Message { delivery_tag: 1 });
}
