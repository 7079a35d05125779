//! Error types: with and without `Display`, through aliases, borrowing, generic.

use std::fmt;

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

type Own<T> = Result<T, Mute>;

#[derive(Debug)]
struct Mute;

impl From<Error> for Mute {
    fn from(_: Error) -> Self {
        Self
    }
}

struct Lent<'a>(&'a str);

impl From<Error> for Lent<'_> {
    fn from(_: Error) -> Self {
        Self("refused")
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[idempotent(key = "error_types:mute:<id>", idem = memory())]
async fn mute(id: u8) -> Own<u8> {
    if id > 9 { Err(Mute) } else { Ok(id) }
}

#[idempotent(key = "error_types:lent:<name>", idem = memory())]
async fn lent<'a>(name: &'a str) -> Result<usize, Lent<'a>> {
    tokio::task::yield_now().await;
    if name.len() > 9 { Err(Lent(name)) } else { Ok(name.len()) }
}

#[idempotent(key = "error_types:any:<id>", idem = memory())]
fn any(id: u8) -> anyhow::Result<u8> {
    anyhow::ensure!(id < 10, "{id} is too much");
    Ok(id)
}

#[idempotent(key = "error_types:generic:<id>", idem = memory())]
async fn generic<E: From<Error> + fmt::Display + Send + Sync>(id: u8, error: Option<E>) -> Result<u8, E> {
    tokio::task::yield_now().await;
    error.map_or(Ok(id), Err)
}

#[idempotent(key = "error_types:nested:<id>", idem = memory())]
fn nested(id: u8) -> Result<Result<u8, String>, Error> {
    Ok(if id > 9 { Err("too much".to_owned()) } else { Ok(id) })
}

#[idempotent(key = "error_types:mute_for_good:<id>", on_error = "record", idem = memory())]
fn mute_for_good(id: u8) -> Result<u8, Failure<Mute>> {
    let _ = id;
    Err(Failure::Own(Mute))
}

#[idempotent(key = "error_types:shown_for_good:<id>", on_error = "record", idem = memory())]
fn shown_for_good(id: u8) -> anyhow::Result<u8> {
    anyhow::bail!("{id} is declined")
}

/// One type of error with [`Mute`], which has no text.
enum Failure<E> {
    Own(E),
    Idem(Error),
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

#[test]
fn a_recorded_failure_tells_the_text_that_the_error_has() {
    assert!(shown_for_good(1).is_err());
    let again = shown_for_good(1).expect_err("it failed for good");
    assert!(again.to_string().ends_with("1 is declined"), "{again}");
    assert!(matches!(mute_for_good(1), Err(Failure::Own(Mute))));
    assert!(matches!(mute_for_good(1), Err(Failure::Idem(Error::PreviouslyFailed { .. }))));
}

#[tokio::test]
async fn errors_of_any_kind_are_handed_on() {
    assert_eq!(once(async || mute(1).await).await, 1);
    assert!(mute(10).await.is_err());
    assert_eq!(once(async || lent("a").await).await, 1);
    assert_eq!(format!("{:?}", lent("much too long").await.expect_err("long")), "much too long");
    assert_eq!(once_sync(|| any(1)), 1);
    assert_eq!(any(10).expect_err("too much").to_string(), "10 is too much");
    assert_eq!(once(async || generic(1, None::<Error>).await).await, 1);
    assert_eq!(once_sync(|| nested(10)), Err("too much".to_owned()));
}
