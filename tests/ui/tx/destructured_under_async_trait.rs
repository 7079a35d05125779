#![allow(unused)]

use async_trait::async_trait;
use idem_runtime::{Error, idempotent};
use sqlx::{Postgres, Transaction};

struct Held<'a, 'b> {
    tx: &'a mut Transaction<'b, Postgres>,
}

struct Bank;

#[async_trait]
trait Billing {
    async fn job(&self, user_id: u64, held: Held<'_, '_>) -> Result<u64, Error>;
}

#[async_trait]
impl Billing for Bank {
    #[idempotent(key = "billing:<user_id>", mode = "transactional")]
    async fn job(&self, user_id: u64, Held { tx }: Held<'_, '_>) -> Result<u64, Error> {
        Ok(user_id)
    }
}

fn call(held: Held<'_, '_>) {
    let _ = Bank.job(1, held);
}

fn main() {}
