//! The steps of a history, and how they are drawn.

use std::time::Duration;

use idem_runtime::{
    record::Status,
    store::{Ending, Moment, NewRow},
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{super::rows, STATUSES};

/// One write. Which row it was made up from, or whose execution it speaks for, is counted back from the last one.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert {
        key: usize,
        row: NewRow,
    },
    Replace {
        seen: usize,
        row: NewRow,
        raise_fence: bool,
        renew_birth: bool,
        audited: bool,
    },
    /// As a flag for review and a resolution do: the row with its history, in another state.
    Restate {
        seen: usize,
        status: Status,
        alerted: Moment,
        audited: bool,
    },
    Finish {
        by: usize,
        whose: Whose,
        ending: Ending,
    },
    Renew {
        by: usize,
        whose: Whose,
        lease: Duration,
    },
    /// A write to the phase, under a claim that its job had.
    Phase {
        under: usize,
        whose: Whose,
        lease: Duration,
        deed: Deed,
    },
    /// The last write once more, as after a lost reply.
    Again,
    Purge,
    Forget {
        seen: usize,
    },
}

/// What is done with the phase.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Insert { row: NewRow },
    Replace { seen: usize, row: NewRow, raise_fence: bool, renew_birth: bool, audited: bool },
    Finish { by: usize, whose: Whose, ending: Ending },
}

/// Whose name and fence a write carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    Own,
    AnothersName,
    AnotherFence,
}

/// Few enough for writes to meet each other: two jobs, and a phase of the first.
pub(super) const KEYS: usize = 3;
pub(super) const JOB: usize = 0;
pub(super) const PHASE: usize = 2;

/// Most histories are long enough for a key to live twice.
pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..40)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..KEYS, row()).prop_map(|(key, row)| Step::Insert { key, row }),
        4 => (0..4_usize, row(), any::<[bool; 3]>()).prop_map(
            |(seen, row, [raise_fence, renew_birth, audited])| Step::Replace {
                seen, row, raise_fence, renew_birth, audited
            }
        ),
        2 => (0..3_usize, status(), moment(), any::<bool>()).prop_map(
            |(seen, status, alerted, audited)| Step::Restate { seen, status, alerted, audited }
        ),
        5 => (0..4_usize, whose(), ending()).prop_map(|(by, whose, ending)| Step::Finish { by, whose, ending }),
        3 => (0..4_usize, whose(), lease()).prop_map(|(by, whose, lease)| Step::Renew { by, whose, lease }),
        4 => (0..2_usize, whose(), lease(), deed())
            .prop_map(|(under, whose, lease, deed)| Step::Phase { under, whose, lease, deed }),
        3 => Just(Step::Again),
        1 => Just(Step::Purge),
        1 => (0..3_usize).prop_map(|seen| Step::Forget { seen }),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        2 => row().prop_map(|row| Deed::Insert { row }),
        2 => (0..2_usize, row(), any::<[bool; 3]>()).prop_map(
            |(seen, row, [raise_fence, renew_birth, audited])| Deed::Replace {
                seen, row, raise_fence, renew_birth, audited
            }
        ),
        3 => (0..2_usize, whose(), ending()).prop_map(|(by, whose, ending)| Deed::Finish { by, whose, ending }),
    ]
}

fn status() -> impl Strategy<Value = Status> {
    // Most writes meet a claim.
    prop_oneof![5 => Just("processing"), 1 => Just("needs_review"), 3 => select(STATUSES.as_slice())]
        .prop_map(Status::from)
}

/// Deadlines lie in the past or far ahead, so that no test waits.
fn moment() -> impl Strategy<Value = Moment> {
    select(vec![Moment::Never, Moment::At(rows::PAST), Moment::In(Duration::ZERO), Moment::In(rows::HOUR)])
}

fn text(of: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    option::of(select(of).prop_map(ToOwned::to_owned))
}

fn row() -> impl Strategy<Value = NewRow> {
    let owner = prop_oneof![1 => Just(None), 9 => (1..4_u8).prop_map(Some)];
    let marks = (status(), owner, 0..3_i32, 0..3_i32);
    let moments = [moment().boxed(), moment().boxed(), moment().boxed()];
    let texts = (
        text(&["retry", "probe", "alert", "tomorrow"]),
        text(&["a", "b"]),
        text(&["1", "null", "{\"a\":\"ä\"}"]),
        text(&["", "no"]),
        text(&["worker-2"]),
    );
    (marks, moments, texts).prop_map(|(marks, [lease, expires, alerted], texts)| {
        let (status, owner, attempt, takeovers) = marks;
        let (on_stale, fingerprint, result, error, worker) = texts;
        NewRow {
            status,
            on_stale,
            owner: owner.map(rows::owner),
            attempt,
            takeovers,
            lease,
            fingerprint,
            result,
            error,
            worker,
            expires,
            alerted,
            ..rows::claim(1)
        }
    })
}

fn whose() -> impl Strategy<Value = Whose> {
    prop_oneof![6 => Just(Whose::Own), 1 => Just(Whose::AnothersName), 1 => Just(Whose::AnotherFence)]
}

fn lease() -> impl Strategy<Value = Duration> {
    select(vec![Duration::ZERO, rows::HOUR])
}

fn ending() -> impl Strategy<Value = Ending> {
    let error = || text(&["no", "time-out"]);
    let term = || select(vec![Duration::ZERO, rows::HOUR]);
    prop_oneof![
        (text(&["1", "2"]), option::of(term())).prop_map(|(result, ttl)| Ending::Completed { result, ttl }),
        (error(), option::of(term()))
            .prop_map(|(error, ttl)| Ending::Failed { error: error.unwrap_or_default(), ttl }),
        (error(), term(), any::<bool>()).prop_map(|(error, purge_after, withdrawn)| Ending::Released {
            error,
            purge_after: Some(purge_after),
            withdrawn
        }),
        error().prop_map(|error| Ending::Held { error }),
    ]
}
