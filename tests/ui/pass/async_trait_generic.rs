//! `#[async_trait]` on a generic trait, and generic methods under it.

use async_trait::async_trait;
use idem_runtime::{Error, KeyPart, idempotent};
use serde::{Serialize, de::DeserializeOwned};

use super::{is_send, memory, once, this_key};

#[async_trait]
trait Handle<M, const N: usize> {
    type Reply;

    async fn handle(&self, message: M, extra: [u8; N]) -> Result<Self::Reply, Error>
    where
        M: 'async_trait;
}

#[async_trait]
trait Typed {
    async fn generic<T: Send + Sync + Serialize>(&self, id: u64, value: T) -> Result<String, Error>
    where
        Self: Sized;

    async fn keyed<K>(&self, id: K) -> Result<String, Error>
    where
        K: KeyPart + Send + Sync + 'static;
}

struct Queue<S>(S);

#[async_trait]
impl<S, M, const N: usize> Handle<M, N> for Queue<S>
where
    S: KeyPart + Send + Sync,
    M: Serialize + DeserializeOwned + Send + Sync,
{
    type Reply = (M, usize);

    #[idempotent(key = "async_trait_generic:handle:<self.0>", fingerprint = (message), idem = memory())]
    async fn handle(&self, message: M, extra: [u8; N]) -> Result<Self::Reply, Error>
    where
        M: 'async_trait,
    {
        tokio::task::yield_now().await;
        Ok((message, extra.len()))
    }
}

#[async_trait]
impl Typed for Queue<u8> {
    #[idempotent(key = "async_trait_generic:generic:<id>", fingerprint = (value), idem = memory())]
    async fn generic<T: Send + Sync + Serialize>(&self, id: u64, value: T) -> Result<String, Error>
    where
        Self: Sized,
    {
        Ok(format!("{id} {}", size_of_val(&value)))
    }

    #[idempotent(key = "async_trait_generic:keyed:<id>", idem = memory())]
    async fn keyed<K>(&self, id: K) -> Result<String, Error>
    where
        K: KeyPart + Send + Sync + 'static,
    {
        tokio::task::yield_now().await;
        let _ = id;
        Ok(this_key())
    }
}

#[tokio::test]
async fn generic_methods_under_async_trait_run_once() {
    let queue = Queue("q");
    let call = async || is_send(Handle::<u32, 2>::handle(&queue, 7, [1, 2])).await;
    assert_eq!(once(call).await, (7, 2));
    assert_eq!(once(async || is_send(Queue(1).generic(1, 5_u16)).await).await, "1 2");
    assert_eq!(once(async || Queue(1).keyed("a b").await).await, "async_trait_generic:keyed:a%20b");
}
