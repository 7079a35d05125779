//! `#[async_trait(?Send)]`: boxed futures that stay on their thread.

use std::{cell::Cell, rc::Rc};

use async_trait::async_trait;
use idem_runtime::{Error, idempotent};

use super::{memory, once, this_key};

#[async_trait(?Send)]
trait Local {
    async fn local(&self, id: u64) -> Result<u64, Error>;

    #[idempotent(key = "async_trait_local:provided:<id>", idem = memory())]
    async fn provided(&self, id: u64, seen: Rc<Cell<u64>>) -> Result<String, Error> {
        seen.set(seen.get() + id);
        tokio::task::yield_now().await;
        Ok(this_key())
    }
}

struct Acme(Rc<str>);

#[async_trait(?Send)]
impl Local for Acme {
    #[idempotent(key = "async_trait_local:local:<self.0>:<id>", idem = memory())]
    async fn local(&self, id: u64) -> Result<u64, Error> {
        let shared = Rc::new(id);
        tokio::task::yield_now().await;
        Ok(*shared)
    }
}

#[tokio::test]
async fn async_trait_methods_may_stay_on_their_thread() {
    let acme: Box<dyn Local> = Box::new(Acme("acme".into()));
    assert_eq!(once(async || acme.local(4).await).await, 4);
    let seen = Rc::new(Cell::new(0));
    assert_eq!(once(async || acme.provided(5, seen.clone()).await).await, "async_trait_local:provided:5");
    assert_eq!(seen.get(), 5, "the body ran once");
}
