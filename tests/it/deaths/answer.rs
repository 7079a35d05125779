//! What a delivery comes to.

use std::fmt::Debug;

use idem_runtime::{ErrorKind, Outcome};

use crate::cases::call::Fault;

/// What a delivery comes to, for the queue that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Runs,
    TakesOver,
    Replays,
    InProgress,
    NeedsReview,
    PreviouslyFailed,
    ClaimLost,
    /// The body's own error.
    Fails,
}

impl Answer {
    pub(super) fn of(result: &Result<String, Fault>, outcome: Option<Outcome>) -> Self {
        match (result, outcome) {
            (Ok(_), Some(Outcome::Executed)) => Self::Runs,
            (Ok(_), Some(Outcome::TookOver)) => Self::TakesOver,
            (Ok(_), Some(Outcome::Replayed)) => Self::Replays,
            (Err(Fault::Own(_)), Some(Outcome::BodyFailed)) => Self::Fails,
            (Err(Fault::Idem(error)), Some(Outcome::Refused(kind))) if error.kind() == kind => {
                Self::refused(kind)
            }
            // The error of a phase, which left the body.
            (Err(Fault::Idem(error)), Some(Outcome::BodyFailed)) => Self::refused(error.kind()),
            _ => panic!("{outcome:?}: {result:?}"),
        }
    }

    fn refused(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InProgress => Self::InProgress,
            ErrorKind::NeedsReview => Self::NeedsReview,
            ErrorKind::PreviouslyFailed => Self::PreviouslyFailed,
            ErrorKind::ClaimLost => Self::ClaimLost,
            _ => panic!("{kind:?}"),
        }
    }

    /// Whether the body ran to its end, and that counts.
    pub(super) fn counts(self) -> bool {
        matches!(self, Self::Runs | Self::TakesOver)
    }

    /// As the document says it of a later delivery.
    pub(super) const fn phrase(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::TakesOver => "takes over and runs",
            Self::Replays => "replays",
            Self::InProgress => "`InProgress`",
            Self::NeedsReview => "`NeedsReview`",
            Self::PreviouslyFailed => "`PreviouslyFailed`",
            Self::ClaimLost => "`ClaimLost`",
            Self::Fails => "its own `Err`",
        }
    }

    /// As the document says it of the worker that goes on.
    pub(super) const fn own_phrase(self) -> &'static str {
        match self {
            Self::Runs | Self::TakesOver => "its own `Ok`",
            other => other.phrase(),
        }
    }
}
