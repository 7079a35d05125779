//! Parameters that are called: closures, function pointers, objects, async ones.

#![allow(clippy::type_complexity)]

use std::{future::Future, pin::Pin};

use idem_runtime::{Error, idempotent};
use serde::{Serialize, de::DeserializeOwned};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "callable:async_once:<id>", idem = memory())]
async fn async_once<F, T>(id: u8, make: F) -> Result<T, Error>
where
    F: AsyncFnOnce(u8) -> T,
    T: Serialize + DeserializeOwned,
{
    Ok(make(id).await)
}

#[idempotent(key = "callable:async_mut:<id>", idem = memory())]
async fn async_mut(id: u8, mut add: impl AsyncFnMut(u8)) -> Result<u8, Error> {
    add(id).await;
    add(id + 1).await;
    Ok(id)
}

#[idempotent(key = "callable:future:<id>", idem = memory())]
async fn future<F>(id: u8, make: impl FnOnce(u8) -> F + Send) -> Result<u8, Error>
where
    F: Future<Output = u8> + Send,
{
    Ok(make(id).await)
}

#[idempotent(key = "callable:objects:<id>", idem = memory())]
fn objects(id: u8, double: &dyn Fn(u8) -> u8, mut log: impl FnMut(u8)) -> Result<u8, Error> {
    log(id);
    Ok(double(id))
}

#[idempotent(key = "callable:boxed:<id>", idem = memory())]
async fn boxed(
    id: u8,
    make: Box<dyn FnOnce(u8) -> Pin<Box<dyn Future<Output = u8> + Send>> + Send>,
    pointer: fn(u8) -> u8,
) -> Result<u8, Error> {
    Ok(pointer(make(id).await))
}

#[idempotent(key = "callable:exclusive:<id>", idem = memory())]
async fn exclusive(id: u8, log: &mut (dyn FnMut(u8) + Send)) -> Result<u8, Error> {
    log(id);
    tokio::task::yield_now().await;
    log(id + 1);
    Ok(id)
}

#[tokio::test]
async fn parameters_can_be_called() {
    assert_eq!(once(async || async_once(1, async |id| id + 1).await).await, 2);
    let mut seen = Vec::new();
    async_mut(1, async |id| seen.push(id)).await.expect("a first run");
    async_mut(1, async |id| seen.push(id)).await.expect("a replay");
    assert_eq!(seen, [1, 2]);
    assert_eq!(once(async || is_send(future(3, |id| async move { id * 2 })).await).await, 6);
    assert_eq!(once_sync(|| objects(2, &|n| n * 2, |_| {})), 4);
    let call = async || is_send(boxed(2, Box::new(|id| Box::pin(async move { id + 1 })), |id| id * 3)).await;
    assert_eq!(once(call).await, 9);
    let mut seen = Vec::new();
    for _ in 0..2 {
        is_send(exclusive(5, &mut |id| seen.push(id))).await.expect("a result");
    }
    assert_eq!(seen, [5, 6], "the body ran once");
}
