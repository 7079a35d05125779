//! `phase!`, as users call it, and the typed shell behind it: what its expansion hands over.

use std::{fmt::Display, future::Future};

use crate::{
    call::{Call, JobError, none, stored},
    drive::Drive,
    error::Error,
    job::OnError,
    probe::Admitted,
    result::Stored,
    run::Ticket,
    transact::{Begun, Ended, attend},
};

/// Runs a part of a job once, under a name of its own, and gives what it gave: a repeat of the job gets the result that
/// was stored, and goes on at the first phase that is not done.
///
/// ```
/// use idem_runtime::{Error, idempotent, phase};
/// # mod bank { pub async fn charge(_: u64, cents: u64) -> Result<u64, idem_runtime::Error> { Ok(cents) } }
/// # mod mail { pub async fn send(_: u64, _: u64) -> Result<(), idem_runtime::Error> { Ok(()) } }
///
/// #[idempotent(key = "checkout:<order>", on_stale = "retry")]
/// async fn checkout(order: u64, cents: u64) -> Result<u64, Error> {
///     let receipt = phase!("charge", on_stale = "alert", async { bank::charge(order, cents).await });
///     phase!("receipt", mode = "record_after", async { mail::send(order, receipt).await });
///     Ok(receipt)
/// }
/// ```
///
/// The name comes first: a string literal of lower-case letters, digits, `-` and `_`, which stands in the key of the
/// phase behind that of its job: `checkout:42/charge`. The body comes last: an `async` block, or in a synchronous job a
/// closure without parameters. It gives a `Result`. The `Ok` is the value of the macro; the `Err`, of the function's own
/// error type, leaves the function that the macro stands in. Between them stand options, which mean what they mean for a
/// job:
///
/// | option | values | default |
/// | --- | --- | --- |
/// | `mode` | `"lock_first"`, `"record_after"`, `"transactional"` | `"lock_first"` |
/// | `stale_after` | a duration: the lease of its own claim (`lock_first` only) | that of its job |
/// | `on_stale` | `"alert"`, `"retry"`, `probe(async \|\| …)` (`lock_first` only) | `"alert"` |
/// | `on_error` | `"hold"`, `"release"`, `"by_mark"`, `"record"`, or the path of a `fn(&E) -> OnError` | as for a job |
/// | `tx` | the variable with the transaction (`transactional` only) | required there |
/// | `each` | `<line.id>`: what tells one element of a loop from another | none |
///
/// A probe is a closure, or the path of a function, that is called without arguments and gives a
/// [`Probe<T>`](crate::Probe), `T` being the value of the phase. A `transactional` phase is recorded in the transaction
/// that its rows are written in, and that the body of the job commits before the next phase. In a loop, `each` gives
/// every element a phase: `phase!("line", each = <line.id>, async { … })` runs under `checkout:42/line:7`.
///
/// It stands in the body of a job, or in a function that such a body calls.
#[macro_export]
macro_rules! phase {
    ($($tokens:tt)*) => { $crate::__private::phase!($crate, $($tokens)*) };
}

/// What the function around a phase returns.
#[diagnostic::on_unimplemented(
    message = "the `Err` of a phase leaves the function that the phase stands in, and `{Self}` cannot hold it",
    label = "not in a function that returns `Result<T, E>`",
    note = "write `-> Result<(), E>`, with the error type of the job"
)]
pub trait PhaseReturn {
    /// The error.
    type Err;

    /// The way out.
    fn leave(error: Self::Err) -> Self;
}

impl<T, E> PhaseReturn for Result<T, E> {
    type Err = E;

    fn leave(error: E) -> Self {
        Err(error)
    }
}

/// How an error leaves the function around a phase.
#[must_use]
pub fn phase_leave<F: PhaseReturn>() -> fn(F::Err) -> F {
    F::leave
}

impl<R, T, E> Call<R, T, E> {
    /// [`none`] of what the body returns.
    #[must_use]
    pub fn no_return(&self) -> fn() -> Option<R> {
        none
    }
}

/// The error of a phase, which is that of its job: it can carry an [`Error`], and has a text for the phase's row.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a phase",
    label = "this error type lacks `From<idem_runtime::Error>` or `Display`",
    note = "`#[derive(thiserror::Error)]` gives it both, with a variant such as `#[error(transparent)] Idem(#[from] \
            idem_runtime::Error)`; or return `anyhow::Result`"
)]
pub trait PhaseError: JobError {
    /// The error's text.
    fn text(&self) -> String;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error> + Display> PhaseError for E {
    fn text(&self) -> String {
        self.to_string()
    }
}

/// Entering a phase. The one place for its bounds.
pub fn phase_call<T: Stored, E: PhaseError>(ticket: Box<Ticket>) -> Call<Result<T, E>, T, E> {
    stored::<Result<T, E>>(ticket).describe(|error| Some(error.text()))
}

/// Runs an asynchronous phase.
pub fn phase_run<T, E, F>(call: Call<Result<T, E>, T, E>, body: F) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    Drive::new(call, |_| None, Box::pin(body), "")
}

/// `phase_run` with a function that judges the error.
pub fn phase_run_classified<T, E, F>(
    call: Call<Result<T, E>, T, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: F,
) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    Drive::new(call, |error| Some(classify(error)), Box::pin(body), "")
}

/// Runs the body of a phase that was admitted.
pub fn phase_finish<T, E, F>(
    admitted: Admitted<Result<T, E>, E>,
    body: F,
) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    Drive::admitted(admitted, |_| None, Box::pin(body))
}

/// `phase_finish` with a function that judges the error.
pub fn phase_finish_classified<T, E, F>(
    admitted: Admitted<Result<T, E>, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: F,
) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    Drive::admitted(admitted, |error| Some(classify(error)), Box::pin(body))
}

/// Runs the body of a phase in the caller's transaction.
pub fn tx_phase<T, E, F>(
    begun: Begun<Result<T, E>, E>,
    body: F,
) -> impl Future<Output = Ended<Result<T, E>, E>>
where
    F: Future<Output = Result<T, E>>,
{
    attend(begun, |_| None, Box::pin(body))
}

/// `tx_phase` with a function that judges the error.
pub fn tx_phase_classified<T, E, F>(
    begun: Begun<Result<T, E>, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: F,
) -> impl Future<Output = Ended<Result<T, E>, E>>
where
    F: Future<Output = Result<T, E>>,
{
    attend(begun, |error| Some(classify(error)), Box::pin(body))
}
