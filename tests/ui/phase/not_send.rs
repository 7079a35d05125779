#![allow(unused)]

use idem_runtime::{Error, idempotent, phase};

fn is_send<T: Send>(_: T) {}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    phase!("charge", async {
        let count = std::rc::Rc::new(user_id);
        Ok(std::future::ready(*count).await)
    });
    Ok(())
}

fn main() {
    is_send(job(1));
}
