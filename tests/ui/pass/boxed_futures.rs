//! Functions that box their future by hand.

use std::{future::Future, pin::Pin};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once};

#[idempotent(key = "boxed_futures:one:<id>", idem = memory())]
fn boxed(id: u8) -> Pin<Box<dyn Future<Output = Result<u8, Error>> + Send>> {
    if id == 0 {
        return Box::pin(std::future::ready(Ok(0)));
    }
    Box::pin(async move {
        tokio::task::yield_now().await;
        Ok(id + 1)
    })
}

#[idempotent(key = "boxed_futures:borrowing:<name>", idem = memory())]
fn borrowing<'a>(name: &'a str) -> Pin<Box<dyn Future<Output = anyhow::Result<usize>> + Send + 'a>> {
    Box::pin(async move { Ok(name.len()) })
}

#[tokio::test]
async fn a_boxed_future_runs_once() {
    assert_eq!(once(async || is_send(boxed(0)).await).await, 0);
    assert_eq!(once(async || is_send(boxed(1)).await).await, 2);
    let name = String::from("acme");
    assert_eq!(once(async || is_send(borrowing(&name)).await).await, 4);
}
