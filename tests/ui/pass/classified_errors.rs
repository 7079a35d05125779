//! `on_error = path`: functions, methods, generic ones.

use idem_runtime::{Error, OnError, idempotent};

use super::{memory, once, once_sync};

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Idem(#[from] Error),
    #[error("declined")]
    Declined,
}

impl Failure {
    fn judge(&self) -> OnError {
        if matches!(self, Self::Declined) { OnError::Release } else { OnError::Hold }
    }
}

fn any<E>(_: &E) -> OnError {
    OnError::Release
}

struct Service;

impl Service {
    fn judge(_: &Failure) -> OnError {
        OnError::Record
    }

    #[idempotent(key = "classified:own:<id>", on_error = Self::judge, idem = memory())]
    async fn own(&self, id: u8) -> Result<u8, Failure> {
        if id > 9 { Err(Failure::Declined) } else { Ok(id) }
    }
}

#[idempotent(key = "classified:method:<id>", on_error = Failure::judge, idem = memory())]
async fn method(id: u8) -> Result<u8, Failure> {
    tokio::task::yield_now().await;
    if id > 9 { Err(Failure::Declined) } else { Ok(id) }
}

#[idempotent(key = "classified:generic:<id>", on_error = self::any, idem = memory())]
fn generic(id: u8) -> Result<u8, Failure> {
    if id > 9 { Err(Failure::Declined) } else { Ok(id) }
}

trait Judge {
    fn judge<E>(_: E) -> OnError;
}

impl Judge for Service {
    fn judge<E>(_: E) -> OnError {
        OnError::Release
    }
}

#[idempotent(key = "classified:qualified:<id>", on_error = <Service as Judge>::judge, idem = memory())]
async fn qualified(id: u8) -> Result<u8, Failure> {
    if id > 9 { Err(Failure::Declined) } else { Ok(id) }
}

#[tokio::test]
async fn a_function_judges_the_error() {
    assert_eq!(once(async || method(1).await).await, 1);
    assert!(matches!(method(10).await, Err(Failure::Declined)));
    assert!(matches!(method(10).await, Err(Failure::Declined)), "released, so it ran again");
    assert!(matches!(qualified(10).await, Err(Failure::Declined)));
    assert!(matches!(qualified(10).await, Err(Failure::Declined)), "released, so it ran again");
    assert_eq!(once_sync(|| generic(1)), 1);
    assert!(matches!(Service.own(10).await, Err(Failure::Declined)));
    assert!(matches!(Service.own(10).await, Err(Failure::Idem(Error::PreviouslyFailed { .. }))));
}
