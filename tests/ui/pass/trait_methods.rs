//! Methods of trait implementations, with native `async fn`.

use idem_runtime::{Error, KeyPart, idempotent};
use serde::{Serialize, de::DeserializeOwned};

use super::{is_send, memory, once, once_sync, this_key};

trait Work<M> {
    type Reply;

    fn tenant(&self) -> String;

    async fn required(&self, id: u8) -> Result<String, Error>;

    async fn handled(&mut self, message: M) -> Result<Self::Reply, Error>;

    async fn generic<K: KeyPart>(&self, key: K, more: impl Into<u64>) -> Result<u64, Error>;

    fn associated(id: u8) -> Result<String, Error>;
}

struct Acme(u64);

impl<M> Work<M> for Acme
where
    M: Serialize + DeserializeOwned + Clone,
{
    type Reply = Vec<M>;

    fn tenant(&self) -> String {
        format!("acme{}", self.0)
    }

    #[idempotent(key = "trait_methods:required:<self.0>:<id>", idem = memory())]
    async fn required(&self, id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        let _ = id;
        Ok(format!("{} {}", <Self as Work<M>>::tenant(self), this_key()))
    }

    #[idempotent(key = "trait_methods:handled:<self.0>", fingerprint = (message), idem = memory())]
    async fn handled(&mut self, message: M) -> Result<Self::Reply, Error> {
        self.0 += 1;
        tokio::task::yield_now().await;
        Ok(vec![message.clone(), message])
    }

    #[idempotent(key = "trait_methods:generic:<self.0>:<key>", idem = memory())]
    async fn generic<K: KeyPart>(&self, key: K, more: impl Into<u64>) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        let _ = key;
        Ok(self.0 + more.into())
    }

    #[idempotent(key = "trait_methods:associated:<id>", idem = memory())]
    fn associated(id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }
}

#[tokio::test]
async fn b6_methods_of_traits_run_once() {
    let call = async || is_send(Work::<u8>::required(&Acme(1), 2)).await;
    assert_eq!(once(call).await, "acme1 trait_methods:required:1:2");
    assert_eq!(once(async || Acme(1).handled("m".to_owned()).await).await, ["m", "m"]);
    assert_eq!(once(async || Work::<u8>::generic(&Acme(3), "k", 4_u8).await).await, 7);
    assert_eq!(once_sync(|| <Acme as Work<u8>>::associated(1)), "trait_methods:associated:1");
}
