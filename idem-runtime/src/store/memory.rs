//! The store of `memory:`: a table that lives and dies with the process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    key::phases_of,
    record::{Record, Status, Version, micros},
    store::{
        Answer, Audit, Audited, Ending, Finish, Insert, Moment, NewRow, PhaseDeed, PhaseWrite, Renew,
        Renewal, Replace, Reply, Store, Watch,
    },
};

/// Rows in this process's memory. Its futures are ready at once.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Default)]
struct State {
    table: Table,
    ahead: Duration,
}

impl MemoryStore {
    /// Moves the store's clock forward: leases end and rows expire without waiting for them.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.ahead = state.ahead.saturating_add(by);
    }

    /// The lines of the audit table, oldest first.
    #[must_use]
    pub fn audited(&self) -> Vec<(Arc<str>, Audited)> {
        self.lock().table.audit.clone()
    }

    /// Works on the table at the present moment. The clock is read under the lock, after any wait for it.
    fn at_once<'a, T: Send + 'a>(&self, work: impl FnOnce(&mut Table, i64) -> T) -> Reply<'a, T> {
        let mut state = self.lock();
        let now = self.clock.now().saturating_add(micros(state.ahead));
        let done = work(&mut state.table, now);
        Box::pin(std::future::ready(Ok(done)))
    }

    // A panic cannot leave a row half changed: whatever a poisoned lock guards is still a table.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("rows", &self.lock().table.rows.len()).finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn writers(&self) -> usize {
        1
    }

    fn is_local(&self) -> bool {
        true
    }

    fn prepare(&self, _create: bool) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ddl(&self) -> String {
        String::new()
    }

    fn insert<'a>(&'a self, batch: &'a [Insert]) -> Reply<'a, Vec<Answer>> {
        self.at_once(|table, now| batch.iter().map(|item| table.insert(now, item)).collect())
    }

    fn replace<'a>(&'a self, replacement: &'a Replace) -> Reply<'a, Answer> {
        self.at_once(|table, now| table.replace(now, replacement))
    }

    fn finish<'a>(&'a self, batch: &'a [Finish]) -> Reply<'a, Vec<Answer>> {
        self.at_once(|table, now| batch.iter().map(|item| table.finish(now, item)).collect())
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Reply<'a, Vec<Renewal>> {
        self.at_once(|table, now| batch.iter().map(|item| table.renew(now, item)).collect())
    }

    fn phase<'a>(&'a self, batch: &'a [PhaseWrite]) -> Reply<'a, Vec<Answer>> {
        self.at_once(|table, now| batch.iter().map(|item| table.phase(now, item)).collect())
    }

    fn between<'a>(&'a self, after: &'a str, before: &'a str, limit: u32) -> Reply<'a, Vec<Record>> {
        self.at_once(|table, now| table.between(now, after, before, limit))
    }

    fn read<'a>(&'a self, keys: &'a [Arc<str>]) -> Reply<'a, Vec<Option<Record>>> {
        self.at_once(|table, now| keys.iter().map(|key| table.read(now, key)).collect())
    }

    fn watch<'a>(&'a self, watch: &'a Watch) -> Reply<'a, Vec<Record>> {
        self.at_once(|table, now| table.watch(now, watch))
    }

    fn audit<'a>(&'a self, key: &'a str) -> Reply<'a, Vec<Audited>> {
        self.at_once(|table, _| table.audit_of(key))
    }

    fn purge(&self, limit: u32) -> Reply<'_, u64> {
        self.at_once(|table, now| table.purge(now, limit))
    }

    fn forget<'a>(&'a self, key: &'a str, expected: &'a Version, audit: &'a Audit) -> Reply<'a, bool> {
        self.at_once(|table, now| table.forget(now, key, expected, audit))
    }
}

/// Microseconds since 1970 that never step back while the process lives.
struct Clock {
    began_at: i64,
    began: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began_at: micros(since_1970), began: Instant::now() }
    }
}

impl Clock {
    fn now(&self) -> i64 {
        self.began_at.saturating_add(micros(self.began.elapsed()))
    }
}

/// The table itself: plain changes at an explicit time.
#[derive(Default)]
struct Table {
    rows: HashMap<Arc<str>, Record>,
    /// The highest fence of a row that is gone.
    fence_floor: i64,
    audit: Vec<(Arc<str>, Audited)>,
}

impl Table {
    fn insert(&mut self, now: i64, insert: &Insert) -> Answer {
        if let Some(record) = self.rows.get(&insert.key) {
            return if insert.made(record) {
                Answer::Written { fence: record.fence }
            } else {
                found(record, now)
            };
        }
        let fence = now.max(self.fence_floor.saturating_add(1));
        let record = written(insert.key.as_ref().to_owned(), &insert.row, fence, now, now);
        self.rows.insert(Arc::clone(&insert.key), record);
        Answer::Written { fence }
    }

    fn replace(&mut self, now: i64, replace: &Replace) -> Answer {
        let Some(record) = self.rows.get_mut(&replace.key) else { return Answer::Gone };
        if !is_in(record, &replace.expected) {
            return if replace.made(record) {
                Answer::Written { fence: record.fence }
            } else {
                found(record, now)
            };
        }
        let fence = if replace.raise_fence { now.max(record.fence.saturating_add(1)) } else { record.fence };
        let born = if replace.renew_birth { now } else { record.created_at };
        *record = written(std::mem::take(&mut record.key), &replace.row, fence, born, now);
        let line = replace.audit.clone().map(|audit| Audited { at: now, audit });
        self.audit.extend(line.map(|line| (Arc::clone(&replace.key), line)));
        Answer::Written { fence }
    }

    fn finish(&mut self, now: i64, finish: &Finish) -> Answer {
        let Some(record) = self.rows.get_mut(&finish.key) else { return Answer::Gone };
        let ours = record.is_of(&finish.owner, finish.fence);
        if ours && finish.ending.expects().contains(&record.status) {
            end(record, &finish.ending, now);
            Answer::Written { fence: record.fence }
        } else if finish.shows_in(record) {
            Answer::Written { fence: record.fence }
        } else {
            found(record, now)
        }
    }

    /// A phase's row is written by the same rules as any other, and then gets what it has of its job.
    fn phase(&mut self, now: i64, write: &PhaseWrite) -> Answer {
        let Some(job) = self.rows.get_mut(&write.job.key).filter(|job| write.stands_in(job)) else {
            return Answer::Gone;
        };
        if job.status != Status::Released {
            job.lease_until = after(now, write.job.lease);
        }
        let birth = job.created_at.to_string();
        let before = self.rows.get(write.key()).cloned();
        let answer = match &write.deed {
            PhaseDeed::Insert(insert) => self.insert(now, insert),
            PhaseDeed::Replace(replace) => self.replace(now, replace),
            PhaseDeed::Finish(finish) => return self.finish(now, finish),
        };
        match self.rows.get_mut(write.key()).filter(|record| Some(&**record) != before.as_ref()) {
            Some(record) => {
                record.fence = write.job.fence.max(before.map_or(i64::MIN, |before| before.fence));
                record.fingerprint = Some(birth);
                Answer::Written { fence: record.fence }
            }
            None => answer,
        }
    }

    fn between(&self, now: i64, after: &str, before: &str, limit: u32) -> Vec<Record> {
        let rows = self.rows.values().filter(|row| after < row.key.as_str() && row.key.as_str() < before);
        let mut rows: Vec<Record> = rows.map(|row| Record { now, ..row.clone() }).collect();
        rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        rows
    }

    fn renew(&mut self, now: i64, renew: &Renew) -> Renewal {
        match self.rows.get_mut(&renew.key) {
            Some(record)
                if record.is_of(&renew.owner, renew.fence)
                    && matches!(record.status, Status::Processing | Status::NeedsReview) =>
            {
                record.lease_until = after(now, renew.lease);
                Renewal::Renewed
            }
            _ => Renewal::Lost,
        }
    }

    fn read(&self, now: i64, key: &str) -> Option<Record> {
        self.rows.get(key).map(|record| Record { now, ..record.clone() })
    }

    fn purge(&mut self, now: i64, limit: u32) -> u64 {
        let expired: Vec<_> = self
            .rows
            .iter()
            .filter(|(_, record)| {
                matches!(record.status, Status::Completed | Status::Failed | Status::Released)
                    && record.expires_at.is_some_and(|end| end <= now)
            })
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for key in &expired {
            self.remove(key);
        }
        expired.len() as u64
    }

    fn watch(&self, now: i64, watch: &Watch) -> Vec<Record> {
        let limit = usize::try_from(watch.limit).unwrap_or(usize::MAX);
        let stale_at = |record: &Record| record.stale_at(watch.foreign_stale_after);
        let mut stale: Vec<_> = self
            .rows
            .values()
            .filter(|record| record.waits_for_review() && stale_at(record) <= now)
            .collect();
        stale.sort_unstable_by_key(|record| stale_at(record));
        let untold = self.rows.values().filter(|record| {
            watch.untold && record.status == Status::NeedsReview && record.alerted_at.is_none()
        });
        let rows = stale.into_iter().take(limit).chain(untold.take(limit));
        rows.map(|record| Record { now, ..record.clone() }).collect()
    }

    fn audit_of(&self, key: &str) -> Vec<Audited> {
        self.audit.iter().filter(|(of, _)| **of == *key).map(|(_, line)| line.clone()).collect()
    }

    fn forget(&mut self, now: i64, key: &str, expected: &Version, audit: &Audit) -> bool {
        let stands = self.rows.get(key).is_some_and(|record| is_in(record, expected));
        if stands {
            self.remove(key);
            self.audit.push((key.into(), Audited { at: now, audit: audit.clone() }));
        }
        stands
    }

    /// Removes a row, and its phases with it.
    fn remove(&mut self, key: &str) {
        let (after, before) = phases_of(key);
        let phases = self.rows.extract_if(|phase, _| after.as_str() < &**phase && &**phase < before.as_str());
        let fences: Vec<i64> = phases.map(|(_, record)| record.fence).collect();
        let fences = fences.into_iter().chain(self.rows.remove(key).map(|record| record.fence));
        self.fence_floor = fences.fold(self.fence_floor, i64::max);
    }
}

fn found(record: &Record, now: i64) -> Answer {
    Answer::Found(Box::new(Record { now, ..record.clone() }))
}

fn is_in(record: &Record, expected: &Version) -> bool {
    record.status == expected.status
        && record.owner == expected.owner
        && record.fence == expected.fence
        && record.lease_until == expected.lease_until
        && record.created_at == expected.created_at
}

fn written(key: String, row: &NewRow, fence: i64, born: i64, now: i64) -> Record {
    let row = row.clone();
    Record {
        key,
        completed_at: (row.status == Status::Completed).then_some(now),
        status: row.status,
        job: row.job,
        template: row.template,
        mode: row.mode,
        on_stale: row.on_stale,
        owner: row.owner,
        fence,
        attempt: row.attempt,
        takeovers: row.takeovers,
        lease_until: at(now, row.lease),
        fingerprint: row.fingerprint,
        result: row.result,
        error: row.error,
        worker: row.worker,
        expires_at: at(now, row.expires),
        alerted_at: at(now, row.alerted),
        created_at: born,
        now,
        phases: Vec::new(),
    }
}

fn end(record: &mut Record, ending: &Ending, now: i64) {
    record.status = ending.status();
    record.lease_until = None;
    record.fence += i64::from(ending.raises_fence());
    match ending {
        Ending::Completed { result, ttl } => {
            record.result.clone_from(result);
            record.completed_at = Some(now);
            record.expires_at = ttl.and_then(|ttl| after(now, ttl));
        }
        Ending::Failed { error, ttl } => {
            record.error = Some(error.clone());
            record.expires_at = ttl.and_then(|ttl| after(now, ttl));
        }
        Ending::Released { error, purge_after, withdrawn } => {
            keep_last(&mut record.error, error.as_ref());
            record.expires_at = purge_after.and_then(|purge_after| after(now, purge_after));
            record.attempt = (record.attempt - i32::from(*withdrawn)).max(0);
        }
        Ending::Held { error } => {
            keep_last(&mut record.error, error.as_ref());
            record.lease_until = Some(now);
        }
    }
}

fn keep_last(held: &mut Option<String>, new: Option<&String>) {
    if let Some(new) = new {
        *held = Some(new.clone());
    }
}

fn at(now: i64, moment: Moment) -> Option<i64> {
    match moment {
        Moment::Never => None,
        Moment::In(wait) => after(now, wait),
        Moment::At(time) => Some(time),
    }
}

#[allow(clippy::unnecessary_wraps)]
fn after(now: i64, wait: Duration) -> Option<i64> {
    Some(now.saturating_add(micros(wait)))
}
