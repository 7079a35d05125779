//! The typed shell of a phase: what the expansion of `phase!` hands over.

use std::{fmt::Display, future::Future};

use crate::{
    call::{Call, JobError, stored},
    drive::Drive,
    error::Error,
    job::OnError,
    probe::Admitted,
    result::Stored,
    run::Ticket,
    transact::{Begun, Ended, attend},
};

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
