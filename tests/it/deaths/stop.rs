//! The points at which a process of the matrix comes to its end, or stands still.

use std::{
    env,
    sync::atomic::{AtomicUsize, Ordering},
};

use idem_runtime::testing::Point;
use idem_tests::child::Parent;

/// A point of a call: one of the runtime's, or one of the body's or the caller's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    BeforeClaim,
    ClaimWritten,
    Claimed,
    BeforeEffect,
    AfterEffect,
    BodyReturned,
    EndingWritten,
    Ended,
    BeforeCommit,
    AfterCommit,
    Flagged,
    Told,
}

/// Names the point at which a child stops.
pub(super) const STOP: &str = "IDEM_DEATHS_STOP";

/// How often it comes there first without stopping.
pub(super) const SPARED: &str = "IDEM_DEATHS_SPARED";

impl Stop {
    fn of(point: Point) -> Option<Self> {
        Some(match point {
            Point::BeforeClaim => Self::BeforeClaim,
            Point::ClaimWritten => Self::ClaimWritten,
            Point::Claimed => Self::Claimed,
            Point::BodyReturned => Self::BodyReturned,
            Point::EndingWritten => Self::EndingWritten,
            Point::Ended => Self::Ended,
            Point::Flagged => Self::Flagged,
            Point::Told => Self::Told,
            _ => return None,
        })
    }

    /// Where a process is then, as the document says it.
    pub(super) const fn phrase(self) -> &'static str {
        match self {
            Self::BeforeClaim => "before it asks for the key",
            Self::ClaimWritten => "when the claim is written, before it hears of it",
            Self::Claimed => "before it enters the body",
            Self::BeforeEffect => "in the body, before the effect",
            Self::AfterEffect => "in the body, after the effect",
            Self::BodyReturned => "after the body, before its end is written",
            Self::EndingWritten => "when the end is written, before it hears of it",
            Self::Ended => "before its queue hears of the end",
            Self::BeforeCommit => "before the caller commits",
            Self::AfterCommit => "after the commit",
            Self::Flagged => "when the key needs review, before a person is told",
            Self::Told => "when a person was told, before the row says so",
        }
    }
}

/// Stops here, once, if this process is a child that is to stop at this point: until its parent says that it goes on.
pub(super) fn here(stop: Stop) {
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let Some(parent) = Parent::attach() else { return };
    if env::var(STOP).is_ok_and(|wanted| wanted == format!("{stop:?}")) {
        let spared = env::var(SPARED).map_or(0, |spared| spared.parse().expect("a number"));
        if PASSED.fetch_add(1, Ordering::SeqCst) == spared {
            parent.say(&format!("at {stop:?}"));
            let _ = parent.hear();
        }
    }
}

/// Stops at the runtime's own points as well.
pub(super) fn watch() {
    idem_runtime::testing::at_every_point(|point| {
        if let Some(stop) = Stop::of(point) {
            here(stop);
        }
    });
}
