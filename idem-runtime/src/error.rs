//! Everything a call can answer besides the job's own result.

use std::time::Duration;

use crate::key::Key;

/// Why a call of an idempotent job was refused, or could not be recorded.
///
/// The job's error type converts from it (`E: From<idem_runtime::Error>`), so that a job's caller sees one
/// error type. [`is_retryable`](Self::is_retryable) tells a queue whether to deliver again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another execution holds the key and is alive.
    #[error("`{key}` is in progress; try again in {}", seconds(*.retry_after))]
    #[non_exhaustive]
    InProgress {
        /// The key that is held.
        key: Key,
        /// When the holder's lease ends, at the latest, as things are.
        retry_after: Duration,
    },
    /// An earlier execution stopped half way and nobody knows whether its effect happened; a person decides.
    #[error("`{key}` needs review: {reason}; look at its effect, then resolve it")]
    #[non_exhaustive]
    NeedsReview {
        /// The key under review.
        key: Key,
        /// What is known of the execution that stopped.
        reason: String,
        /// When to ask again: a person may have resolved it by then.
        retry_after: Duration,
    },
    /// This execution lost its claim, so its result was not recorded.
    #[error("the claim on `{key}` was lost while the job ran; its result was not recorded")]
    #[non_exhaustive]
    ClaimLost {
        /// The key whose claim was lost.
        key: Key,
    },
    /// The store could not be used; the job did not run.
    #[error("the store of idempotency keys could not be used: {message}")]
    #[non_exhaustive]
    Store {
        /// The key of the call, where there is one.
        key: Option<Key>,
        /// What was tried and what to do.
        message: String,
        /// What the database or its driver said.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The job ran and the database did not acknowledge its completion in time: it may or may not be recorded.
    #[error("`{key}` ran, and its completion was not acknowledged: {message}")]
    #[non_exhaustive]
    CompletionUnknown {
        /// The key of the execution.
        key: Key,
        /// The encoded result, for a person to resolve the key with.
        result: Option<String>,
        /// What the database said last.
        message: String,
    },
    /// The transaction cannot go on and can be tried again as a whole: others changed what it had read (a
    /// serialization failure, a SQLite snapshot that is too old). The job did not run, or was undone.
    #[error("the transaction of `{key}` conflicts with another; roll it back and begin again: {source}")]
    #[non_exhaustive]
    TransactionConflict {
        /// The key of the call.
        key: Key,
        /// What the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The transaction that the job was called in is gone, and what was done in it with it: a deadlock that MySQL ended
    /// by rolling it back, a lost connection, a `COMMIT` or `ROLLBACK` behind its back. Begin a new one.
    #[error("the transaction of `{key}` is gone, and the job's rows with it; begin a new one: {source}")]
    #[non_exhaustive]
    TransactionLost {
        /// The key of the call.
        key: Key,
        /// What the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A `transactional` job was called with a connection that has no open transaction.
    #[error(
        "`{key}` did not run, for its connection has no open transaction; begin one with sqlx's `begin` and hand that over"
    )]
    #[non_exhaustive]
    NotInTransaction {
        /// The key of the call.
        key: Key,
    },
    /// [`Idem::shutdown`](crate::Idem::shutdown) was called: no new claims.
    #[error("`{key}` was not started: this process is shutting down")]
    #[non_exhaustive]
    ShuttingDown {
        /// The key of the call.
        key: Key,
    },
    /// The background thread is gone (it died, or the process forked after it was started).
    #[error("the background service is gone{}; build a new `Idem` in this process", after(.key.as_ref()))]
    #[non_exhaustive]
    ServiceGone {
        /// The key of the call, where there is one.
        key: Option<Key>,
    },
    /// The key is completed and there is no stored result to answer with.
    #[error("`{key}` is already completed, and no result is stored to replay")]
    #[non_exhaustive]
    AlreadyCompleted {
        /// The completed key.
        key: Key,
    },
    /// The same key was used before with other arguments.
    #[error("`{key}` was used before with another fingerprint: the same key must mean the same arguments")]
    #[non_exhaustive]
    FingerprintMismatch {
        /// The key of the call.
        key: Key,
    },
    /// Two jobs can render the same key, or a row of this key belongs to a job with another template.
    #[error("`{key}` belongs to two jobs: {conflict}")]
    #[non_exhaustive]
    KeyConflict {
        /// The key of the call.
        key: Key,
        /// Both jobs, and where they stand.
        conflict: String,
    },
    /// The job failed for good before (`on_error = "record"`).
    #[error("`{key}` failed for good before: {message}")]
    #[non_exhaustive]
    PreviouslyFailed {
        /// The failed key.
        key: Key,
        /// The error's text, as it was recorded.
        message: String,
    },
    /// The stored result cannot be read as today's result type; the job is not run again.
    #[error("the stored result of `{key}` cannot be read as `{wanted}`: {source}")]
    #[non_exhaustive]
    ReplayUnreadable {
        /// The completed key.
        key: Key,
        /// The type the caller wants.
        wanted: &'static str,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
    /// A value cannot be part of a key.
    #[error("no key from `{template}`: {reason}")]
    #[non_exhaustive]
    InvalidKey {
        /// The key's template, or the text that was given as a key.
        template: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// No `Idem` is installed in this process.
    #[error(
        "`{job}` did not run, for no `Idem` is installed; call `Idem::connect(url).await?.install()?` before, or \
         write `idem = …` in its attribute"
    )]
    #[non_exhaustive]
    NotInstalled {
        /// The label of the job that was called.
        job: &'static str,
    },
    /// The key was entered again from inside its own execution, which would wait for itself.
    #[error("`{key}` was called again from inside its own execution")]
    #[non_exhaustive]
    Reentered {
        /// The key of the call.
        key: Key,
    },
    /// A phase was entered a second time in one execution: in a loop, or under the name of another one.
    #[error(
        "the phase `{key}` was entered twice in one execution; give each its own name, or in a loop `each = <…>`"
    )]
    #[non_exhaustive]
    PhaseRepeated {
        /// The key of the phase.
        key: Key,
    },
    /// There is no execution here: the call stands outside an idempotent job's body.
    #[error(
        "`{called}` was called outside of an idempotent job; call it from the body of an `#[idempotent]` function"
    )]
    #[non_exhaustive]
    OutsideJob {
        /// What was called.
        called: &'static str,
    },
    /// The set-up is wrong: a URL, an option, a table.
    #[error("{message}")]
    #[non_exhaustive]
    Config {
        /// What is wrong and what to do.
        message: String,
        /// What the database or its driver said.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// The kind of an [`Error`], without its fields: what metrics and [`Outcome`](crate::Outcome) carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// [`Error::InProgress`].
    InProgress,
    /// [`Error::NeedsReview`].
    NeedsReview,
    /// [`Error::ClaimLost`].
    ClaimLost,
    /// [`Error::Store`].
    Store,
    /// [`Error::CompletionUnknown`].
    CompletionUnknown,
    /// [`Error::TransactionConflict`].
    TransactionConflict,
    /// [`Error::TransactionLost`].
    TransactionLost,
    /// [`Error::NotInTransaction`].
    NotInTransaction,
    /// [`Error::ShuttingDown`].
    ShuttingDown,
    /// [`Error::ServiceGone`].
    ServiceGone,
    /// [`Error::AlreadyCompleted`].
    AlreadyCompleted,
    /// [`Error::FingerprintMismatch`].
    FingerprintMismatch,
    /// [`Error::KeyConflict`].
    KeyConflict,
    /// [`Error::PreviouslyFailed`].
    PreviouslyFailed,
    /// [`Error::ReplayUnreadable`].
    ReplayUnreadable,
    /// [`Error::InvalidKey`].
    InvalidKey,
    /// [`Error::NotInstalled`].
    NotInstalled,
    /// [`Error::Reentered`].
    Reentered,
    /// [`Error::PhaseRepeated`].
    PhaseRepeated,
    /// [`Error::OutsideJob`].
    OutsideJob,
    /// [`Error::Config`].
    Config,
}

impl Error {
    /// Whether a later delivery can fare better: a retry meets the row as it then is.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::InProgress
                | ErrorKind::NeedsReview
                | ErrorKind::ClaimLost
                | ErrorKind::Store
                | ErrorKind::CompletionUnknown
                | ErrorKind::TransactionConflict
                | ErrorKind::TransactionLost
                | ErrorKind::ShuttingDown
                | ErrorKind::ServiceGone
        )
    }

    /// How long to wait before the next delivery, where it is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress { retry_after, .. } | Self::NeedsReview { retry_after, .. } => {
                Some(*retry_after)
            }
            _ => None,
        }
    }

    /// The key of the call, where it was rendered before the error.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::InProgress { key, .. }
            | Self::NeedsReview { key, .. }
            | Self::ClaimLost { key }
            | Self::CompletionUnknown { key, .. }
            | Self::TransactionConflict { key, .. }
            | Self::TransactionLost { key, .. }
            | Self::NotInTransaction { key }
            | Self::ShuttingDown { key }
            | Self::AlreadyCompleted { key }
            | Self::FingerprintMismatch { key }
            | Self::KeyConflict { key, .. }
            | Self::PreviouslyFailed { key, .. }
            | Self::ReplayUnreadable { key, .. }
            | Self::Reentered { key }
            | Self::PhaseRepeated { key } => Some(key),
            Self::Store { key, .. } | Self::ServiceGone { key } => key.as_ref(),
            Self::InvalidKey { .. }
            | Self::NotInstalled { .. }
            | Self::OutsideJob { .. }
            | Self::Config { .. } => None,
        }
    }

    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InProgress { .. } => ErrorKind::InProgress,
            Self::NeedsReview { .. } => ErrorKind::NeedsReview,
            Self::ClaimLost { .. } => ErrorKind::ClaimLost,
            Self::Store { .. } => ErrorKind::Store,
            Self::CompletionUnknown { .. } => ErrorKind::CompletionUnknown,
            Self::TransactionConflict { .. } => ErrorKind::TransactionConflict,
            Self::TransactionLost { .. } => ErrorKind::TransactionLost,
            Self::NotInTransaction { .. } => ErrorKind::NotInTransaction,
            Self::ShuttingDown { .. } => ErrorKind::ShuttingDown,
            Self::ServiceGone { .. } => ErrorKind::ServiceGone,
            Self::AlreadyCompleted { .. } => ErrorKind::AlreadyCompleted,
            Self::FingerprintMismatch { .. } => ErrorKind::FingerprintMismatch,
            Self::KeyConflict { .. } => ErrorKind::KeyConflict,
            Self::PreviouslyFailed { .. } => ErrorKind::PreviouslyFailed,
            Self::ReplayUnreadable { .. } => ErrorKind::ReplayUnreadable,
            Self::InvalidKey { .. } => ErrorKind::InvalidKey,
            Self::NotInstalled { .. } => ErrorKind::NotInstalled,
            Self::Reentered { .. } => ErrorKind::Reentered,
            Self::PhaseRepeated { .. } => ErrorKind::PhaseRepeated,
            Self::OutsideJob { .. } => ErrorKind::OutsideJob,
            Self::Config { .. } => ErrorKind::Config,
        }
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::Config { message: message.into(), source: None }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn after(key: Option<&Key>) -> String {
    key.map(|key| format!(" (at `{key}`)")).unwrap_or_default()
}
