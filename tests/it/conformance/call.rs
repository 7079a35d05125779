//! What the jobs of the suite have in common.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use idem_runtime::{Error, ErrorKind, Idem, Record};
use tokio::sync::Notify;

use super::rows::at_rest;

/// How a job of the suite fails.
#[derive(Debug)]
pub(super) enum Fault {
    Idem(Error),
    Body(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idem(error) => error.fmt(f),
            Self::Body(text) => f.write_str(text),
        }
    }
}

/// The body's own error.
pub(super) fn body_fails<T>(text: &str) -> Result<T, Fault> {
    Err(Fault::Body(text.to_owned()))
}

/// The kind of error with which a call was refused.
#[track_caller]
pub(super) fn refused<T: fmt::Debug>(returned: Result<T, Fault>) -> ErrorKind {
    match returned {
        Err(Fault::Idem(error)) => error.kind(),
        other => panic!("not refused: {other:?}"),
    }
}

/// The text of the body's own error.
#[track_caller]
pub(super) fn failed<T: fmt::Debug>(returned: Result<T, Fault>) -> String {
    match returned {
        Err(Fault::Body(text)) => text,
        other => panic!("not the body's error: {other:?}"),
    }
}

/// How often a body was entered.
#[derive(Debug, Default)]
pub(super) struct Runs(AtomicUsize);

impl Runs {
    /// Counts one more; the how manyeth.
    pub(super) fn enter(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A place in a body where it waits until the test lets it go on.
#[derive(Debug, Default)]
pub(super) struct Gate {
    entered: Notify,
    open: Notify,
}

impl Gate {
    /// For the body: says that it is here, and waits.
    pub(super) async fn pass(&self) {
        self.entered.notify_one();
        self.open.notified().await;
    }

    /// For the test: waits until the body is there.
    pub(super) async fn entered(&self) {
        self.entered.notified().await;
    }

    /// For the test: lets the body go on.
    pub(super) fn open(&self) {
        self.open.notify_one();
    }
}

/// The row of a key, which must be there.
pub(super) async fn row(idem: &Idem, key: &str) -> Record {
    let record = idem.lookup(key).await.expect("a look-up");
    at_rest(record.unwrap_or_else(|| panic!("no row for {key}")))
}
