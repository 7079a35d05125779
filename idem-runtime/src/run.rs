//! The one orchestration per mode: admit a call, attend its body, settle what it left.

mod admit;
mod ask;
mod phase;
mod settle;
mod ticket;
mod transact;

use std::sync::Arc;

use self::admit::{Admitted, Call};
pub use self::ticket::Ticket;
pub(crate) use self::{
    settle::{Attendance, Ending, Execution},
    transact::{Enlist, begin, end},
};
use crate::{
    error::Error,
    idem::Idem,
    job::{Job, Mode},
    key::Key,
    outcome::{Outcome, Slot},
    record::Status,
    store::{LONGEST_LABEL, Moment, NewRow},
};

/// How often a claim that keeps meeting another row looks again before it says that the key is busy.
const LOOKS: usize = 16;

/// What becomes of a call.
pub(crate) enum Admission {
    /// The body runs.
    Run(Box<Execution>),
    /// The probe is asked first.
    Ask(Box<Execution>),
    /// The key is completed.
    Completed(Completed),
    /// The call is answered with an error.
    Refused(Refusal),
}

/// A call whose key is completed.
pub(crate) struct Completed {
    job: &'static Job,
    key: Key,
    result: Option<String>,
    slot: Option<Arc<Slot>>,
}

impl Completed {
    pub(crate) fn result(&self) -> Option<&str> {
        self.result.as_deref()
    }

    pub(crate) fn replayed(self) {
        tracing::info!(job = self.job.name(), key = shown(&self.key), "already done, skipped");
        report(self.slot.as_ref(), Outcome::Replayed);
    }

    pub(crate) fn without_result(self) -> Error {
        self.refuse(|key| Error::AlreadyCompleted { key })
    }

    pub(crate) fn unreadable(self, wanted: &'static str, source: serde_json::Error) -> Error {
        self.refuse(|key| Error::ReplayUnreadable { key, wanted, source })
    }

    fn refuse(self, error: impl FnOnce(Key) -> Error) -> Error {
        Refusal { job: self.job, error: error(self.key), slot: self.slot }.report()
    }
}

/// A call that is answered with an error.
pub(crate) struct Refusal {
    job: &'static Job,
    error: Error,
    slot: Option<Arc<Slot>>,
}

impl Refusal {
    /// The error, said once.
    pub(crate) fn report(self) -> Error {
        let Self { job, error, slot } = self;
        let job = job.name();
        let key = error.key().and_then(shown);
        match &error {
            Error::InProgress { .. } => tracing::debug!(job, key, "busy: another execution holds the key"),
            Error::AlreadyCompleted { .. } => {
                tracing::info!(job, key, "already done, skipped; no result to replay");
            }
            Error::NeedsReview { .. } => tracing::error!(job, key, "needs review: not run"),
            Error::ShuttingDown { .. } => tracing::debug!(job, key, "shutting down: not run"),
            Error::ClaimLost { .. } => tracing::warn!(job, key, "claim lost: the result was not recorded"),
            Error::CompletionUnknown { message, .. } => {
                tracing::error!(
                    job,
                    key,
                    message,
                    "completion unknown: the job ran, its completion may be recorded"
                );
            }
            _ => tracing::error!(job, key, kind = ?error.kind(), "refused"),
        }
        report(slot.as_ref(), Outcome::Refused(error.kind()));
        error
    }
}

fn report(slot: Option<&Arc<Slot>>, outcome: Outcome) {
    if let Some(slot) = slot {
        slot.set(outcome);
    }
}

/// A key's value, for an event: only where someone listens at debug level.
fn shown(key: &Key) -> Option<&str> {
    tracing::enabled!(tracing::Level::DEBUG).then(|| key.as_str())
}

/// Decides whether a call runs.
pub(crate) async fn admit(ticket: Ticket, place: &'static str) -> Admission {
    let job = ticket.called();
    let slot = Slot::take();
    let admitted = match Call::prepare(ticket, place) {
        Ok(call) => match job.mode() {
            Mode::LockFirst if call.claims() => call.claim().await,
            Mode::LockFirst | Mode::RecordAfter => call.look_up().await,
            // The attribute calls `begin` for these.
            Mode::Transactional => Err(Error::config("a `transactional` job needs its caller's transaction")),
        },
        Err(error) => Err(error),
    };
    admission(job, slot, admitted)
}

fn admission(job: &'static Job, slot: Option<Arc<Slot>>, admitted: Result<Admitted, Error>) -> Admission {
    match admitted {
        Ok(Admitted::Run(mut execution)) => {
            execution.slot = slot;
            if execution.asks() { Admission::Ask(execution) } else { Admission::Run(execution) }
        }
        Ok(Admitted::Completed { key, result }) => Admission::Completed(Completed { job, key, result, slot }),
        Err(error) => Admission::Refused(Refusal { job, error, slot }),
    }
}

/// A row of a job, so far without an owner.
fn job_row(job: &Job, idem: &Idem, status: Status, fingerprint: Option<String>) -> NewRow {
    NewRow {
        status,
        job: Some(label(job.name())),
        template: Some(job.shape().to_owned()),
        mode: Some(job.mode().as_str().to_owned()),
        on_stale: None,
        owner: None,
        attempt: 1,
        takeovers: 0,
        lease: Moment::Never,
        fingerprint,
        result: None,
        error: None,
        worker: Some(label(idem.worker())),
        expires: Moment::Never,
        alerted: Moment::Never,
    }
}

/// A label as a row takes it.
fn label(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_LABEL as usize)].to_owned()
}
