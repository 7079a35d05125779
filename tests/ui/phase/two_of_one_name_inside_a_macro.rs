#![allow(unused)]

use idem_runtime::{Error, idempotent};

macro_rules! phase {
    ($name:literal, $(each = $each:expr,)? async $block:block) => {
        async { $block }.await
    };
}

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: u64) -> Result<(), Error> {
    let _ = vec![phase!("charge", async { user_id }), phase!("charge", async { user_id })];
    Ok(())
}

fn main() {
    let _ = job(1);
}
