//! Rows as a test writes and compares them.

use std::time::Duration;

use idem_runtime::{
    record::{Record, Status},
    store::{Answer, Ending, Insert, Moment, NewRow, Replace},
};

pub(super) const LEASE: Duration = Duration::from_mins(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);
/// A moment long ago.
pub(super) const PAST: i64 = 1;

/// The id of execution `n`, 32 hex digits.
pub(super) fn owner(n: u8) -> String {
    format!("{n:02x}").repeat(16)
}

/// A live claim of execution `n`.
pub(super) fn claim(n: u8) -> NewRow {
    NewRow {
        status: Status::Processing,
        job: Some("app::charge".to_owned()),
        template: Some("billing:<>:<>".to_owned()),
        mode: Some("lock_first".to_owned()),
        on_stale: Some("retry".to_owned()),
        owner: Some(owner(n)),
        attempt: 1,
        takeovers: 0,
        lease: Moment::In(LEASE),
        fingerprint: None,
        result: None,
        error: None,
        worker: Some("worker-1".to_owned()),
        expires: Moment::Never,
        alerted: Moment::Never,
    }
}

/// A row of execution `n` in a state.
pub(super) fn in_state(status: Status, n: u8) -> NewRow {
    let lease = if status == Status::Processing { Moment::In(LEASE) } else { Moment::Never };
    NewRow { status, lease, ..claim(n) }
}

pub(super) fn insert(key: &str, row: NewRow) -> Insert {
    Insert { key: key.into(), row }
}

/// The row once more, to be changed in parts.
pub(super) fn again(record: &Record) -> NewRow {
    NewRow {
        status: record.status.clone(),
        job: record.job.clone(),
        template: record.template.clone(),
        mode: record.mode.clone(),
        on_stale: record.on_stale.clone(),
        owner: record.owner.clone(),
        attempt: record.attempt,
        takeovers: record.takeovers,
        lease: record.lease_until.into(),
        fingerprint: record.fingerprint.clone(),
        result: record.result.clone(),
        error: record.error.clone(),
        worker: record.worker.clone(),
        expires: record.expires_at.into(),
        alerted: record.alerted_at.into(),
    }
}

/// A new execution in the place of what was read.
pub(super) fn takeover(record: &Record, n: u8) -> Replace {
    Replace {
        key: record.key.as_str().into(),
        expected: record.version(),
        row: NewRow {
            attempt: record.attempt + 1,
            takeovers: record.takeovers + 1,
            error: record.error.clone(),
            ..claim(n)
        },
        raise_fence: true,
        renew_birth: false,
        audit: None,
    }
}

/// The row with another state and everything else as it was.
pub(super) fn restated(record: &Record, status: Status) -> Replace {
    Replace {
        key: record.key.as_str().into(),
        expected: record.version(),
        row: NewRow { status, ..again(record) },
        raise_fence: false,
        renew_birth: false,
        audit: None,
    }
}

pub(super) fn completed(result: Option<&str>) -> Ending {
    Ending::Completed { result: result.map(ToOwned::to_owned), ttl: None }
}

pub(super) fn failed(error: &str) -> Ending {
    Ending::Failed { error: error.to_owned(), ttl: Some(HOUR) }
}

pub(super) fn released(error: Option<&str>) -> Ending {
    Ending::Released { error: error.map(ToOwned::to_owned), purge_after: Some(HOUR), withdrawn: false }
}

pub(super) fn held(error: Option<&str>) -> Ending {
    Ending::Held { error: error.map(ToOwned::to_owned) }
}

/// The fence of a write that must have counted.
#[track_caller]
pub(super) fn written(answer: Answer) -> i64 {
    match answer {
        Answer::Written { fence } => fence,
        other => panic!("not written: {other:?}"),
    }
}

/// The row that a write must have met.
#[track_caller]
pub(super) fn found(answer: Answer) -> Record {
    match answer {
        Answer::Found(record) => *record,
        other => panic!("not found: {other:?}"),
    }
}

/// A row without the moment at which it was read.
pub(super) fn at_rest(record: Record) -> Record {
    let mut record = record;
    record.now = 0;
    record
}

/// A deadline as far as it can be compared between databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    None,
    Past,
    Ahead,
}

impl Deadline {
    fn of(at: Option<i64>, now: i64) -> Self {
        match at {
            None => Self::None,
            Some(at) if at <= now => Self::Past,
            Some(_) => Self::Ahead,
        }
    }
}

/// All of a row that does not depend on the clock and on the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    status: Status,
    texts: [Option<String>; 8],
    counts: [i32; 2],
    deadlines: [Deadline; 3],
    completed: bool,
}

pub(super) fn shape(record: &Record) -> Shape {
    let r = record.clone();
    Shape {
        status: r.status,
        texts: [r.job, r.template, r.mode, r.on_stale, r.owner, r.fingerprint, r.result, r.error],
        counts: [r.attempt, r.takeovers],
        deadlines: [r.lease_until, r.expires_at, r.alerted_at].map(|at| Deadline::of(at, r.now)),
        completed: r.completed_at.is_some(),
    }
}

/// What an answer says, as far as it can be compared between databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gist {
    Written,
    Found(Box<Shape>),
    Gone,
}

pub(super) fn gist(answer: &Answer) -> Gist {
    match answer {
        Answer::Written { .. } => Gist::Written,
        Answer::Found(record) => Gist::Found(Box::new(shape(record))),
        Answer::Gone => Gist::Gone,
    }
}
