//! Type parameters, of functions and of the types that they are methods of.

use std::{collections::BTreeMap, fmt::Display, marker::PhantomData};

use idem_runtime::{Error, KeyPart, Stored, idempotent};
use serde::{Serialize, de::DeserializeOwned};

use super::{is_send, memory, once};

#[idempotent(key = "generics:part:<id>", idem = memory())]
async fn part<T: KeyPart + Display>(id: T) -> Result<String, Error> {
    Ok(id.to_string())
}

#[idempotent(key = "generics:value:<id>", idem = memory())]
async fn value<T>(id: u8, value: T) -> Result<T, Error>
where
    T: Serialize + DeserializeOwned + Send,
{
    tokio::task::yield_now().await;
    let _ = id;
    Ok(value)
}

#[idempotent(key = "generics:stored:<id>", idem = memory())]
async fn stored<T: Stored>(id: u8, value: T) -> Result<T, Error> {
    let _ = id;
    Ok(value)
}

#[idempotent(key = "generics:marked:<id>", idem = memory())]
async fn marked<E: From<Error> + Send>(id: u8, _error: PhantomData<E>) -> Result<u8, E> {
    tokio::task::yield_now().await;
    Ok(id)
}

struct Store<T>(T);

impl<T: KeyPart + Send + Sync> Store<T> {
    #[idempotent(key = "generics:of_impl:<self.0>:<id>", idem = memory())]
    async fn of_impl(&self, id: u8) -> Result<BTreeMap<String, u8>, Error> {
        tokio::task::yield_now().await;
        Ok([("id".to_owned(), id)].into())
    }
}

#[tokio::test]
async fn generic_functions_run_once() {
    assert_eq!(once(async || is_send(part("a")).await).await, "a");
    assert_eq!(once(async || is_send(value(1, vec![1, 2])).await).await, [1, 2]);
    assert_eq!(once(async || stored(1, Some("x".to_owned())).await).await.as_deref(), Some("x"));
    assert_eq!(once(async || marked(1, PhantomData::<Error>).await).await, 1);
    assert_eq!(once(async || is_send(Store("s").of_impl(1)).await).await["id"], 1);
}
