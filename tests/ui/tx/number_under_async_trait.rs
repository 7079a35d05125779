#![allow(unused)]

use async_trait::async_trait;
use idem_runtime::{Error, idempotent};

struct Bank;

#[async_trait]
trait Billing {
    async fn job(&self, user_id: u64, tx: &mut u8) -> Result<u64, Error>;
}

#[async_trait]
impl Billing for Bank {
    #[idempotent(key = "billing:<user_id>", mode = "transactional")]
    async fn job(&self, user_id: u64, tx: &mut u8) -> Result<u64, Error> {
        Ok(user_id)
    }
}

fn main() {}
