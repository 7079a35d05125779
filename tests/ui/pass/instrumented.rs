//! `#[tracing::instrument]` above and below.

use async_trait::async_trait;
use idem_runtime::{Error, idempotent};
use tracing::instrument;

use super::{memory, once, once_sync};

#[instrument]
#[idempotent(key = "instrumented:above:<id>", idem = memory())]
async fn above(id: u8) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(id)
}

#[idempotent(key = "instrumented:below:<id>", idem = memory())]
#[instrument(skip_all, fields(id), ret, err)]
async fn below(id: u8) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(id)
}

#[instrument(err)]
#[idempotent(key = "instrumented:sync:<id>", idem = memory())]
fn sync(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[async_trait]
trait Work {
    async fn traced(&self, id: u8) -> Result<u8, Error>;
    async fn traced_above(&self, id: u8) -> Result<u8, Error>;
}

#[async_trait]
impl Work for () {
    #[idempotent(key = "instrumented:trait:<id>", idem = memory())]
    #[instrument(skip(self))]
    async fn traced(&self, id: u8) -> Result<u8, Error> {
        tokio::task::yield_now().await;
        Ok(id)
    }

    #[instrument(skip(self))]
    #[idempotent(key = "instrumented:trait_above:<id>", idem = memory())]
    async fn traced_above(&self, id: u8) -> Result<u8, Error> {
        tokio::task::yield_now().await;
        Ok(id)
    }
}

#[tokio::test]
async fn spans_stand_above_and_below() {
    assert_eq!(once(async || above(1).await).await, 1);
    assert_eq!(once(async || below(1).await).await, 1);
    assert_eq!(once_sync(|| sync(1)), 1);
    assert_eq!(once(async || ().traced(1).await).await, 1);
    assert_eq!(once(async || ().traced_above(1).await).await, 1);
}
