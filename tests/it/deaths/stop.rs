//! The points at which a process of the matrix comes to its end, or stands still.

use std::{
    env,
    sync::atomic::{AtomicUsize, Ordering},
};

use idem_runtime::testing::Point;
use idem_tests::child::Parent;

/// A point of a call: one of the runtime's, or one of the body's or the caller's own. A job of phases comes by some of
/// them once for itself and once for each of its two phases.
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
    BeforePhase,
    PhaseWritten,
    PhaseClaimed,
    ProbeAnswered,
    BeforePhaseEffect,
    AfterPhaseEffect,
    PhaseReturned,
    PhaseEnding,
    PhaseEnded,
    BetweenPhases,
    JobReturned,
    JobEnding,
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
            Point::ProbeAnswered => Self::ProbeAnswered,
            Point::BodyReturned => Self::BodyReturned,
            Point::EndingWritten => Self::EndingWritten,
            Point::Ended => Self::Ended,
            Point::Flagged => Self::Flagged,
            Point::Told => Self::Told,
            _ => return None,
        })
    }

    /// The point that it is, and how often a process comes by there before.
    pub(super) const fn place(self) -> (Self, usize) {
        match self {
            Self::BeforePhase => (Self::BeforeClaim, 1),
            Self::PhaseWritten => (Self::ClaimWritten, 1),
            Self::PhaseClaimed => (Self::Claimed, 1),
            Self::BeforePhaseEffect => (Self::BeforeEffect, 0),
            Self::AfterPhaseEffect => (Self::AfterEffect, 0),
            Self::PhaseReturned => (Self::BodyReturned, 0),
            Self::PhaseEnding => (Self::EndingWritten, 0),
            Self::PhaseEnded => (Self::Ended, 0),
            Self::JobReturned => (Self::BodyReturned, 2),
            Self::JobEnding => (Self::EndingWritten, 2),
            itself => (itself, 0),
        }
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
            Self::BeforePhase => "before it asks for the phase",
            Self::PhaseWritten => "when the phase's claim is written, before it hears of it",
            Self::PhaseClaimed => "before it enters the phase",
            Self::ProbeAnswered => "when the probe has answered, before anything came of it",
            Self::BeforePhaseEffect => "in the phase, before its effect",
            Self::AfterPhaseEffect => "in the phase, after its effect",
            Self::PhaseReturned => "after the phase, before its end is written",
            Self::PhaseEnding => "when the phase's end is written, before it hears of it",
            Self::PhaseEnded => "before its job hears of the phase's end",
            Self::BetweenPhases => "between this phase and the next",
            Self::JobReturned => "after the last phase, before the job's end is written",
            Self::JobEnding => "when the job's end is written, before it hears of it",
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
