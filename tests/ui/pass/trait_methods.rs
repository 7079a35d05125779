//! Methods of trait implementations and provided methods, with native `async fn`.

use std::future::Future;

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync};

#[allow(async_fn_in_trait)]
trait Work {
    fn tenant(&self) -> String;

    async fn required(&self, id: u8) -> Result<String, Error>;

    fn spawnable(&self, id: u8) -> impl Future<Output = Result<u8, Error>> + Send;

    #[idempotent(key = "trait_methods:provided:<tenant>", idem = memory())]
    async fn provided(&self, tenant: String) -> Result<String, Error> {
        Ok(format!("{} {tenant}", self.tenant()))
    }

    #[idempotent(key = "trait_methods:provided_sync:<id>", idem = memory())]
    fn provided_sync(&self, id: u8) -> Result<u8, Error>
    where
        Self: Sized,
    {
        Ok(id + 1)
    }
}

struct Acme;

impl Work for Acme {
    fn tenant(&self) -> String {
        "acme".to_owned()
    }

    #[idempotent(key = "trait_methods:required:<id>", idem = memory())]
    async fn required(&self, id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        Ok(format!("{} {id}", self.tenant()))
    }

    #[idempotent(key = "trait_methods:spawnable:<id>", idem = memory())]
    async fn spawnable(&self, id: u8) -> Result<u8, Error> {
        tokio::task::yield_now().await;
        Ok(id)
    }
}

#[tokio::test]
async fn methods_of_traits_run_once() {
    assert_eq!(once(async || Acme.required(1).await).await, "acme 1");
    assert_eq!(once(async || is_send(Acme.spawnable(1)).await).await, 1);
    assert_eq!(once(async || Acme.provided("north".to_owned()).await).await, "acme north");
    assert_eq!(once_sync(|| Acme.provided_sync(1)), 2);
}
