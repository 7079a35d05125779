//! Futures that are built and not awaited: nothing has happened yet, and nothing is recorded.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU8, Ordering},
};

use async_trait::async_trait;
use idem_runtime::{Error, idempotent};

use super::{memory, once};

static RUNS: [AtomicU8; 3] = [const { AtomicU8::new(0) }; 3];

fn ran(which: usize) -> u8 {
    RUNS[which].fetch_add(1, Ordering::SeqCst)
}

#[idempotent(key = "unawaited:native:<id>", idem = memory())]
async fn native(id: u8) -> Result<u8, Error> {
    ran(0);
    Ok(id)
}

#[idempotent(key = "unawaited:boxed:<id>", idem = memory())]
fn boxed(id: u8) -> Pin<Box<dyn Future<Output = Result<u8, Error>> + Send>> {
    ran(1);
    if id == 0 {
        return Box::pin(async { Ok(0) });
    }
    Box::pin(async move { Ok(id) })
}

#[async_trait]
trait Work {
    async fn method(&self, id: u8) -> Result<u8, Error>;
}

#[async_trait]
impl Work for () {
    #[idempotent(key = "unawaited:method:<id>", idem = memory())]
    async fn method(&self, id: u8) -> Result<u8, Error> {
        ran(2);
        Ok(id)
    }
}

#[tokio::test]
async fn a_future_that_is_merely_built_completes_nothing() {
    for id in [0, 1] {
        drop((native(id), boxed(id), ().method(id)));
    }
    for key in ["unawaited:native:1", "unawaited:boxed:0", "unawaited:boxed:1", "unawaited:method:1"] {
        assert!(memory().lookup(key).await.expect("an answer").is_none(), "{key}");
    }
    assert_eq!(RUNS.each_ref().map(|runs| runs.load(Ordering::SeqCst)), [0, 0, 0]);
    for id in [0, 1] {
        assert_eq!(once(async || native(id).await).await, id);
        assert_eq!(once(async || boxed(id).await).await, id);
        assert_eq!(once(async || ().method(id).await).await, id);
    }
    assert_eq!(RUNS.each_ref().map(|runs| runs.load(Ordering::SeqCst)), [2, 2, 2]);
}
