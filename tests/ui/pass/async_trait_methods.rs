//! Methods under `#[async_trait]`, which have become functions to boxed futures by then.

use async_trait::async_trait;
use idem_runtime::{Error, OnError, idempotent};

use super::{is_send, memory, once};

#[async_trait]
trait Work: Send + Sync {
    async fn owned(&self, id: u64, values: Vec<u8>, pair: (u8, u8), note: &str) -> anyhow::Result<usize>;
    async fn exclusive(&mut self, id: u64) -> Result<u64, Error>;
    async fn consuming(self: Box<Self>, id: u64) -> Result<u64, Error>;

    #[idempotent(key = "async_trait:provided:<id>", idem = memory())]
    async fn provided(&self, id: u64) -> Result<u64, Error> {
        let twice = async move { id * 2 };
        Ok(twice.await)
    }
}

struct Acme {
    tenant: String,
    count: u64,
}

#[async_trait]
impl Work for Acme {
    #[idempotent(key = "async_trait:owned:<self.tenant>:<id>:<note>", idem = memory())]
    async fn owned(
        &self,
        id: u64,
        mut values: Vec<u8>,
        (a, b): (u8, u8),
        note: &str,
    ) -> anyhow::Result<usize> {
        tokio::task::yield_now().await;
        values.push(a + b);
        if values.is_empty() {
            return Err(anyhow::anyhow!("nothing in {id}"));
        }
        Ok(values.len() + note.len() + self.tenant.len())
    }

    #[idempotent(key = "async_trait:exclusive:<self.tenant>:<id>", on_error = judge, idem = memory())]
    async fn exclusive(&mut self, id: u64) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        self.count += id;
        Ok(self.count)
    }

    #[idempotent(key = "async_trait:consuming:<id>", idem = memory())]
    async fn consuming(self: Box<Self>, id: u64) -> Result<u64, Error> {
        Ok(self.count + id)
    }
}

fn judge(_: &Error) -> OnError {
    OnError::Release
}

#[async_trait]
trait Borrowing {
    async fn borrowed<'a>(&'a self, id: u64) -> Result<&'a str, Error>;
}

#[async_trait]
impl Borrowing for Acme {
    #[idempotent(key = "async_trait:borrowed:<id>", replay = false, idem = memory())]
    async fn borrowed<'a>(&'a self, id: u64) -> Result<&'a str, Error> {
        Ok(if id > 0 { &self.tenant } else { "" })
    }
}

fn acme() -> Acme {
    Acme { tenant: "acme".to_owned(), count: 1 }
}

#[tokio::test]
async fn async_trait_methods_run_once() {
    let work: Box<dyn Borrowing> = Box::new(acme());
    assert_eq!(work.borrowed(1).await.expect("a first run"), "acme");
    assert!(work.borrowed(1).await.is_err());
    let acme_again = acme();
    assert_eq!(once(async || is_send(acme_again.owned(1, vec![1], (2, 3), "ab")).await).await, 8);
    assert_eq!(once(async || acme().exclusive(2).await).await, 3);
    assert_eq!(once(async || Box::new(acme()).consuming(2).await).await, 3);
    assert_eq!(once(async || acme().provided(4).await).await, 8);
}
