//! The reference: what each write does to a row, as plain changes of a plain value at an explicit time.
//!
//! Two things are held against it. Every store answers a random sequence of writes as it does
//! (`conformance::*::any_history_of_writes_reads_as_the_references`), and the model checker explores the claim protocol
//! on top of it (`tests/model`). What is model-checked is therefore what the stores do.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    hash::{Hash, Hasher},
    ops::Deref,
    pin::pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

use idem_runtime::{
    record::{Record, Status, Version, micros},
    store::{
        Answer, Ending, Finish, Insert, Moment, NewRow, PhaseDeed, PhaseWrite, Renew, Renewal, Replace,
        Store, memory::MemoryStore,
    },
};

/// A row as it stands or as somebody read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Row(Arc<Record>);

impl Row {
    /// A row as it was answered.
    #[must_use]
    pub fn new(record: Record) -> Self {
        Self(Arc::new(record))
    }

    /// The row as it is read at a time.
    #[must_use]
    pub fn at(&self, now: i64) -> Self {
        self.with(|record| record.now = now)
    }

    /// The row with a change.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Record)) -> Self {
        let mut record = (*self.0).clone();
        change(&mut record);
        Self::new(record)
    }

    /// All that a writer sets, so that it can be written again in another state.
    #[must_use]
    pub fn again(&self) -> NewRow {
        let record = (*self.0).clone();
        NewRow {
            status: record.status,
            job: record.job,
            template: record.template,
            mode: record.mode,
            on_stale: record.on_stale,
            owner: record.owner,
            attempt: record.attempt,
            takeovers: record.takeovers,
            lease: record.lease_until.into(),
            fingerprint: record.fingerprint,
            result: record.result,
            error: record.error,
            worker: record.worker,
            expires: record.expires_at.into(),
            alerted: record.alerted_at.into(),
        }
    }
}

impl Deref for Row {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.0
    }
}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let row = &**self;
        (&row.status, row.fence, row.attempt, row.takeovers).hash(state);
        (row.lease_until, row.expires_at, row.alerted_at, row.created_at).hash(state);
        (row.completed_at, row.now).hash(state);
        (&row.key, &row.owner, &row.on_stale, &row.result, &row.error).hash(state);
        (&row.job, &row.template, &row.mode, &row.fingerprint, &row.worker).hash(state);
    }
}

/// What differs from nothing, in one line: the paths of a model checker show many rows.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = &**self;
        write!(f, "{} fence {}", row.status, row.fence)?;
        let texts = [("owner", &row.owner), ("on_stale", &row.on_stale), ("result", &row.result)];
        for (name, text) in texts {
            text.iter().try_for_each(|text| write!(f, " {name} {text}"))?;
        }
        let times = [("lease", row.lease_until), ("expires", row.expires_at), ("alerted", row.alerted_at)];
        for (name, time) in times {
            time.iter().try_for_each(|time| write!(f, " {name} {time}"))?;
        }
        write!(f, " takeovers {} born {} read {}", row.takeovers, row.created_at, row.now)
    }
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table {
    rows: BTreeMap<Arc<str>, Row>,
    /// The highest fence of a row that is gone.
    pub floor: i64,
}

/// An answer, and whether the write changed the row: a repeated write is answered as the first one was, and changes
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What the store answers.
    pub answer: Answer,
    /// Whether this very write did it, so that an audit line is written.
    pub changed: bool,
}

impl Done {
    fn changed(fence: i64) -> Self {
        Self { answer: Answer::Written { fence }, changed: true }
    }

    fn unchanged(answer: Answer) -> Self {
        Self { answer, changed: false }
    }
}

impl Table {
    /// A row as it stands.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&Row> {
        self.rows.get(key)
    }

    /// A row as it is read at a time.
    #[must_use]
    pub fn read(&self, now: i64, key: &str) -> Option<Row> {
        self.row(key).map(|row| row.at(now))
    }

    /// Inserts a row where the key is absent.
    pub fn insert(&mut self, now: i64, insert: &Insert) -> Done {
        if let Some(row) = self.rows.get(&insert.key) {
            return Done::unchanged(met(row, insert.made(row), now));
        }
        let fence = now.max(self.floor + 1);
        self.rows.insert(Arc::clone(&insert.key), written(&insert.key, &insert.row, fence, now, now));
        Done::changed(fence)
    }

    /// Replaces a row that is in the expected version.
    pub fn replace(&mut self, now: i64, replace: &Replace) -> Done {
        let Some(row) = self.rows.get_mut(&replace.key) else { return Done::unchanged(Answer::Gone) };
        if row.version() != replace.expected {
            return Done::unchanged(met(row, replace.made(row), now));
        }
        let fence = if replace.raise_fence { now.max(row.fence + 1) } else { row.fence };
        let born = if replace.renew_birth { now } else { row.created_at };
        *row = written(&replace.key, &replace.row, fence, born, now);
        Done::changed(fence)
    }

    /// Ends an execution whose claim stands.
    pub fn finish(&mut self, now: i64, finish: &Finish) -> Done {
        let Some(row) = self.rows.get_mut(&finish.key) else { return Done::unchanged(Answer::Gone) };
        let stands = row.is_of(&finish.owner, finish.fence) && finish.ending.expects().contains(&row.status);
        if !stands {
            return Done::unchanged(met(row, finish.shows_in(row), now));
        }
        *row = row.with(|record| end(record, finish, now));
        Done::changed(row.fence)
    }

    /// Renews the lease of an execution whose claim stands, also in review.
    pub fn renew(&mut self, now: i64, renew: &Renew) -> Renewal {
        match self.rows.get_mut(&renew.key) {
            Some(row) if row.is_of(&renew.owner, renew.fence) && is_claim(&row.status) => {
                let lease_until = Some(now + micros(renew.lease));
                *row = row.with(|record| record.lease_until = lease_until);
                Renewal::Renewed
            }
            _ => Renewal::Lost,
        }
    }

    /// Writes a phase's row under the claim of its job: as any other row is written, but that it has the job's fence, and
    /// the birth of the job's row for its fingerprint.
    pub fn phase(&mut self, now: i64, write: &PhaseWrite) -> Done {
        let Some(job) = self.rows.get_mut(&write.job.key).filter(|job| write.stands_in(job)) else {
            return Done::unchanged(Answer::Gone);
        };
        if job.status != Status::Released {
            *job = job.with(|record| record.lease_until = Some(now + micros(write.job.lease)));
        }
        let birth = job.created_at.to_string();
        let before = self.row(write.key()).map_or(i64::MIN, |row| row.fence);
        let done = match &write.deed {
            PhaseDeed::Insert(insert) => self.insert(now, insert),
            PhaseDeed::Replace(replace) => self.replace(now, replace),
            PhaseDeed::Finish(finish) => return self.finish(now, finish),
        };
        if !done.changed {
            return done;
        }
        let fence = write.job.fence.max(before);
        self.tamper(write.key(), |record| {
            record.fence = fence;
            record.fingerprint = Some(birth);
        });
        Done::changed(fence)
    }

    /// Whether a row has phases.
    #[must_use]
    pub fn has_phases(&self, key: &str) -> bool {
        let phase = format!("{key}/");
        self.rows.keys().any(|of| of.starts_with(&phase))
    }

    /// Deletes what ended and is past its stored expiry, each with its phases; answers the keys, those of the phases that
    /// went along left out.
    pub fn purge(&mut self, now: i64) -> Vec<Arc<str>> {
        let gone = |row: &Row| !is_claim(&row.status) && !is_foreign(&row.status);
        let past = |row: &Row| row.expires_at.is_some_and(|end| end <= now);
        let keys: Vec<Arc<str>> =
            self.rows.iter().filter(|(_, row)| gone(row) && past(row)).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.remove(key);
        }
        keys
    }

    /// Deletes a row that is in the expected version.
    pub fn forget(&mut self, key: &str, expected: &Version) -> bool {
        let stands = self.row(key).is_some_and(|row| row.version() == *expected);
        if stands {
            self.remove(key);
        }
        stands
    }

    /// Deletes a row by a hand that knows nothing of us: neither of its phases nor of fences.
    pub fn delete(&mut self, key: &str) {
        self.rows.remove(key);
    }

    /// Changes a row as no write would: for a protocol that is broken on purpose.
    pub fn tamper(&mut self, key: &str, change: impl FnOnce(&mut Record)) {
        if let Some(row) = self.rows.get_mut(key) {
            *row = row.with(change);
        }
    }

    fn remove(&mut self, key: &str) {
        let phase = format!("{key}/");
        let gone = self.rows.extract_if(.., |of, _| **of == *key || of.starts_with(&phase));
        self.floor = gone.fold(self.floor, |floor, (_, row)| floor.max(row.fence));
    }
}

fn is_claim(status: &Status) -> bool {
    matches!(status, Status::Processing | Status::NeedsReview)
}

fn is_foreign(status: &Status) -> bool {
    matches!(status, Status::Other(_))
}

/// The answer of a write that changed nothing: the row shows it already, or shows something else.
fn met(row: &Row, shows: bool, now: i64) -> Answer {
    if shows { Answer::Written { fence: row.fence } } else { Answer::Found(Box::new((*row.at(now)).clone())) }
}

fn written(key: &Arc<str>, row: &NewRow, fence: i64, created_at: i64, now: i64) -> Row {
    let row = row.clone();
    let at = |moment| match moment {
        Moment::Never => None,
        Moment::In(wait) => Some(now + micros(wait)),
        Moment::At(time) => Some(time),
    };
    let mut record = blank().clone();
    record.key = key.as_ref().into();
    record.completed_at = (row.status == Status::Completed).then_some(now);
    record.lease_until = at(row.lease);
    record.expires_at = at(row.expires);
    record.alerted_at = at(row.alerted);
    record.status = row.status;
    record.job = row.job;
    record.template = row.template;
    record.mode = row.mode;
    record.on_stale = row.on_stale;
    record.owner = row.owner;
    record.attempt = row.attempt;
    record.takeovers = row.takeovers;
    record.fingerprint = row.fingerprint;
    record.result = row.result;
    record.error = row.error;
    record.worker = row.worker;
    record.fence = fence;
    record.created_at = created_at;
    Row::new(record)
}

fn end(record: &mut Record, finish: &Finish, now: i64) {
    record.status = finish.ending.status();
    record.fence = finish.fence_after();
    record.lease_until = None;
    match finish.ending.clone() {
        Ending::Completed { result, ttl } => {
            record.result = result;
            record.completed_at = Some(now);
            record.expires_at = ttl.map(|ttl| now + micros(ttl));
        }
        Ending::Failed { error, ttl } => {
            record.error = Some(error);
            record.expires_at = ttl.map(|ttl| now + micros(ttl));
        }
        Ending::Released { error, purge_after, withdrawn } => {
            record.error = error.or(record.error.take());
            record.expires_at = purge_after.map(|purge_after| now + micros(purge_after));
            record.attempt = (record.attempt - i32::from(withdrawn)).max(0);
        }
        Ending::Held { error } => {
            record.error = error.or(record.error.take());
            record.lease_until = Some(now);
        }
    }
}

/// What a worker that knows nothing of us writes: a claim, and nothing else.
#[must_use]
pub fn foreign_claim() -> NewRow {
    NewRow {
        status: Status::Processing,
        job: None,
        template: None,
        mode: None,
        on_stale: None,
        owner: None,
        attempt: 0,
        takeovers: 0,
        lease: Moment::Never,
        fingerprint: None,
        result: None,
        error: None,
        worker: None,
        expires: Moment::Never,
        alerted: Moment::Never,
    }
}

/// A record with nothing in it. Only a store can make one, since records may gain fields.
fn blank() -> &'static Record {
    static BLANK: OnceLock<Record> = OnceLock::new();
    BLANK.get_or_init(|| {
        let store = MemoryStore::default();
        let batch = [Insert { key: "".into(), row: foreign_claim() }];
        at_once(store.insert(&batch)).expect("an answer");
        let read = at_once(store.read(&["".into()])).expect("an answer").remove(0);
        let mut record = read.expect("the row");
        record.now = 0;
        record
    })
}

/// The answer of a store that has it ready.
fn at_once<T>(reply: impl Future<Output = T>) -> T {
    match pin!(reply).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the store in memory answers at once"),
    }
}
