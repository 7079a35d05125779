#![allow(unused)]

use idem_runtime::{Error, idempotent};

#[idempotent(key = "billing:<user_id>")]
async fn job(user_id: Box<f32>) -> Result<(), Error> {
    Ok(())
}

fn main() {}
