#![allow(unused)]

use idem_runtime::{Error, KeyPart, idempotent};

#[derive(KeyPart)]
struct Id<T>(T);

#[idempotent(key = "billing:<id>")]
async fn job(id: Id<f32>) -> Result<(), Error> {
    Ok(())
}

fn main() {}
