use std::fmt;

use serde::{Deserialize, Serialize};

use crate::key::Key;

/// One delivery of a job to a worker. Its number is also what the job returns where this is the delivery that ran, so
/// that a replay tells which one that was.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) id: u64,
    pub(crate) key: Key,
    /// Milliseconds from the body's begin to its effect.
    pub(crate) before: u64,
    /// Milliseconds from the effect to the body's end.
    pub(crate) after: u64,
    pub(crate) fate: Fate,
}

/// How the body ends if nobody ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    Succeeds,
    FailsBeforeEffect,
    FailsAfterEffect,
    PanicsBeforeEffect,
    PanicsAfterEffect,
}

/// What a worker answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) delivery: u64,
    pub(crate) end: End,
}

/// How a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Done {
        how: How,
        value: u64,
    },
    /// The job's own error.
    Failed,
    Panicked,
    /// The database ended a transaction, or none could be begun.
    NotCommitted(String),
    /// An error of Idem; whether the body had come to its end.
    Refused {
        kind: String,
        retryable: bool,
        retry_after: Option<u64>,
        returned: bool,
    },
}

/// How a job came to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum How {
    Executed,
    TookOver,
    Probed,
    Replayed,
}

impl End {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, End::Done { .. })
    }

    /// Whether this delivery's own completion was accepted.
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self, End::Done { how: How::Executed | How::TookOver, .. })
    }

    pub(crate) fn is_refused_as(&self, wanted: &str) -> bool {
        matches!(self, End::Refused { kind, .. } if kind == wanted)
    }

    /// Whether no body of this delivery has run.
    pub(crate) fn ran_nothing(&self) -> bool {
        match self {
            End::Done { .. } => !self.is_accepted(),
            End::Refused { .. } => !self.tells_of_a_run() && !self.is_of_transaction(),
            End::Failed | End::Panicked | End::NotCommitted(_) => false,
        }
    }

    /// Whether a body has run, to whatever end.
    pub(crate) fn tells_of_a_run(&self) -> bool {
        match self {
            End::Failed | End::Panicked => true,
            End::Done { .. } => self.is_accepted(),
            End::Refused { returned, kind, .. } => *returned || kind == "ClaimLost",
            End::NotCommitted(_) => false,
        }
    }

    /// Whether the transaction ended before or under the job.
    fn is_of_transaction(&self) -> bool {
        self.is_refused_as("TransactionLost") || self.is_refused_as("TransactionConflict")
    }

    /// Whether a write of a holder that is none any more was rejected.
    pub(crate) fn is_rejected_zombie(&self) -> bool {
        self.is_refused_as("ClaimLost") && matches!(self, End::Refused { returned: true, .. })
    }

    /// The word that counts it.
    pub(crate) fn word(&self) -> String {
        match self {
            End::Done { how, .. } => format!("{how:?}"),
            End::Failed => "BodyFailed".to_owned(),
            End::Panicked => "Panicked".to_owned(),
            End::NotCommitted(_) => "NotCommitted".to_owned(),
            End::Refused { kind, .. } => kind.clone(),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Done { value, .. } => write!(f, "{} with {value}", self.word()),
            End::NotCommitted(why) => write!(f, "NotCommitted: {why}"),
            End::Refused { retry_after, returned, .. } => {
                f.write_str(&self.word())?;
                if *returned {
                    f.write_str(", after its body")?;
                }
                retry_after.map_or(Ok(()), |after| write!(f, ", again in {after} ms"))
            }
            End::Failed | End::Panicked => f.write_str(&self.word()),
        }
    }
}
