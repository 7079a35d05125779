//! Calls of jobs, with the outcome that a case expects of them.

use std::fmt::{self, Debug};

use idem_runtime::{Error, ErrorKind, Outcome, with_outcome, with_outcome_sync};

/// A job's error: one of its own, or ours.
#[derive(Debug)]
pub(crate) enum Fault {
    Idem(Error),
    Own(String),
}

impl Fault {
    pub(crate) fn own(text: &str) -> Self {
        Self::Own(text.to_owned())
    }

    pub(crate) fn idem(self) -> Error {
        match self {
            Self::Idem(error) => error,
            Self::Own(text) => panic!("the job's own error: {text}"),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idem(error) => fmt::Display::fmt(error, f),
            Self::Own(text) => f.write_str(text),
        }
    }
}

/// The body ran under a fresh claim; its value.
pub(crate) async fn executed<T: Debug, E: Debug>(call: impl Future<Output = Result<T, E>>) -> T {
    value(with_outcome(call).await, Outcome::Executed)
}

/// The body ran under a claim that was taken over; its value.
pub(crate) async fn took_over<T: Debug, E: Debug>(call: impl Future<Output = Result<T, E>>) -> T {
    value(with_outcome(call).await, Outcome::TookOver)
}

/// The stored value was given.
pub(crate) async fn replayed<T: Debug, E: Debug>(call: impl Future<Output = Result<T, E>>) -> T {
    value(with_outcome(call).await, Outcome::Replayed)
}

/// The body ran and returned its own error.
pub(crate) async fn failed<T: Debug, E: Debug>(call: impl Future<Output = Result<T, E>>) -> E {
    error(with_outcome(call).await, Outcome::BodyFailed)
}

/// The body did not run, or its end did not count.
pub(crate) async fn refused<T: Debug, E: Debug>(
    kind: ErrorKind,
    call: impl Future<Output = Result<T, E>>,
) -> E {
    error(with_outcome(call).await, Outcome::Refused(kind))
}

/// [`executed`] of a synchronous job.
pub(crate) fn executed_sync<T: Debug, E: Debug>(call: impl FnOnce() -> Result<T, E>) -> T {
    value(with_outcome_sync(call), Outcome::Executed)
}

/// [`replayed`] of a synchronous job.
pub(crate) fn replayed_sync<T: Debug, E: Debug>(call: impl FnOnce() -> Result<T, E>) -> T {
    value(with_outcome_sync(call), Outcome::Replayed)
}

pub(crate) fn value<T: Debug, E: Debug>(
    (result, outcome): (Result<T, E>, Option<Outcome>),
    expected: Outcome,
) -> T {
    assert_eq!(outcome, Some(expected), "{result:?}");
    result.expect("a value with this outcome")
}

fn error<T: Debug, E: Debug>((result, outcome): (Result<T, E>, Option<Outcome>), expected: Outcome) -> E {
    assert_eq!(outcome, Some(expected), "{result:?}");
    result.expect_err("an error with this outcome")
}
