//! A history of writes, each made to a store and to the reference, in the numbers of each.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use idem_runtime::{
    record::{Record, Status},
    store::{
        Answer, Audit, Ending, Finish, Insert, NewRow, PhaseDeed, PhaseWrite, Renew, Renewal, Replace, Watch,
    },
};
use idem_tests::table::{Row, Table};
use proptest::{prop_assert, prop_assert_eq, test_runner::TestCaseError};

use super::{
    super::{
        rows::{self, Gist, at_rest, gist, shape},
        subject::Subject,
    },
    step::{Deed, JOB, KEYS, PHASE, Step, Whose},
};

/// When the reference's clock begins.
pub(super) const NOW: i64 = 1_700_000_000_000_000;

type Compared<T = ()> = Result<T, TestCaseError>;

/// Something in the numbers of the store, and in those of the reference.
type Pair<T> = [T; 2];

/// A write, in both numbers.
#[derive(Clone, Debug)]
enum Write {
    Insert(Insert),
    Replace(Box<Pair<Replace>>),
    Finish(Pair<Finish>),
    Renew(Pair<Renew>),
    Phase(Box<Pair<PhaseWrite>>),
}

/// What came of the history so far.
struct History<'a> {
    subject: &'a Subject,
    keys: [Arc<str>; KEYS],
    reference: Table,
    /// The reference's clock.
    now: i64,
    /// The rows that were seen, each with its like.
    seen: Vec<(usize, Pair<Row>)>,
    /// The executions that there were.
    executions: Vec<(usize, String, Pair<i64>)>,
    last: Option<Write>,
    /// Each key's row as it was after the last step, and the highest fence that the store gave it.
    rows: HashMap<usize, (Record, Row)>,
    highest: HashMap<usize, i64>,
    audit: Vec<(usize, [String; 5])>,
}

/// Takes the steps, and compares each answer and what the rows are after it.
pub(super) async fn compare(subject: &Subject, number: usize, steps: Vec<Step>) -> Compared {
    // What other histories left, so that a purge has to do with this one alone.
    while subject.store.purge(1000).await.expect("a purge") > 0 {}
    let mut history = History {
        subject,
        keys: ["a", "b", "a/x"].map(|name| format!("{number}:{name}").into()),
        reference: Table::default(),
        now: NOW,
        seen: Vec::new(),
        executions: Vec::new(),
        last: None,
        rows: HashMap::new(),
        highest: HashMap::new(),
        audit: Vec::new(),
    };
    for step in steps {
        history.now += 1_000_000;
        history.take(step).await?;
        history.read().await?;
        history.watch().await?;
    }
    history.read_audit().await
}

/// One of the last things that were remembered.
fn back<T>(remembered: &[T], by: usize) -> Option<&T> {
    remembered.len().checked_sub(by + 1).map(|at| &remembered[at])
}

/// The same of what was remembered of one key.
fn back_of<T>(remembered: &[T], key: impl Fn(&T) -> bool, by: usize) -> Option<usize> {
    let mut of_key = (0..remembered.len()).rev().filter(|at| key(&remembered[*at]));
    of_key.nth(by).map(|at| remembered.len() - 1 - at)
}

/// A row with a birth in its fingerprint that is the same in both numbers.
fn alike(record: &Record) -> Record {
    let mut record = record.clone();
    if record.fingerprint.as_ref().is_some_and(|text| text.parse::<i64>().is_ok()) {
        record.fingerprint = Some("a birth".to_owned());
    }
    record
}

fn gist_of(answer: &Answer) -> Gist {
    match answer {
        Answer::Found(record) => gist(&Answer::Found(Box::new(alike(record)))),
        answer => gist(answer),
    }
}

fn is_watched(row: &Record, watch: &Watch) -> bool {
    let stale = row.waits_for_review() && row.stale_at(watch.foreign_stale_after) <= row.now;
    stale || (watch.untold && row.status == Status::NeedsReview && row.alerted_at.is_none())
}

impl History<'_> {
    async fn take(&mut self, step: Step) -> Compared {
        let write = match step {
            Step::Insert { key, row } => Some(Write::Insert(Insert { key: self.keys[key].clone(), row })),
            Step::Replace { seen, row, raise_fence, renew_birth, audited } => self
                .replacing(seen, |_| row.clone(), raise_fence, renew_birth, audited)
                .map(|replaces| Write::Replace(Box::new(replaces))),
            Step::Restate { seen, status, alerted, audited } => {
                let restated = |row: &Row| NewRow { status: status.clone(), alerted, ..row.again() };
                let replaces = self.replacing(seen, restated, false, false, audited);
                replaces.map(|replaces| Write::Replace(Box::new(replaces)))
            }
            Step::Finish { by, whose, ending } => self.finishing(by, whose, &ending).map(Write::Finish),
            Step::Renew { by, whose, lease } => self.renewing(by, whose, lease).map(Write::Renew),
            Step::Phase { under, whose, lease, deed } => self.phase(under, whose, lease, deed),
            Step::Again => self.last.take(),
            Step::Purge => return self.purge().await,
            Step::Forget { seen } => return self.forget(seen).await,
        };
        let Some(write) = write else { return Ok(()) };
        self.last = Some(write.clone());
        self.write(write).await
    }

    fn finishing(&self, by: usize, whose: Whose, ending: &Ending) -> Option<Pair<Finish>> {
        let (key, owner, fences) = self.speaking(by, whose)?;
        Some(fences.map(|fence| Finish {
            key: key.clone(),
            owner: owner.clone(),
            fence,
            ending: ending.clone(),
        }))
    }

    fn renewing(&self, by: usize, whose: Whose, lease: Duration) -> Option<Pair<Renew>> {
        let (key, owner, fences) = self.speaking(by, whose)?;
        Some(fences.map(|fence| Renew { key: key.clone(), owner: owner.clone(), fence, lease }))
    }

    fn phase(&self, under: usize, whose: Whose, lease: Duration, deed: Deed) -> Option<Write> {
        let of = |key| move |execution: &(usize, String, Pair<i64>)| execution.0 == key;
        let jobs = self.renewing(back_of(&self.executions, of(JOB), under)?, whose, lease)?;
        let deeds = match deed {
            Deed::Insert { row } => {
                let insert = Insert { key: self.keys[PHASE].clone(), row };
                [insert.clone(), insert].map(|insert| PhaseDeed::Insert(Box::new(insert)))
            }
            Deed::Replace { seen, row, raise_fence, renew_birth, audited } => {
                let seen = back_of(&self.seen, |(key, _)| *key == PHASE, seen)?;
                let replaces = self.replacing(seen, |_| row.clone(), raise_fence, renew_birth, audited)?;
                replaces.map(|replace| PhaseDeed::Replace(Box::new(replace)))
            }
            Deed::Finish { by, whose, ending } => {
                let by = back_of(&self.executions, of(PHASE), by)?;
                self.finishing(by, whose, &ending)?.map(PhaseDeed::Finish)
            }
        };
        let [theirs, ours] = jobs;
        let [to_them, to_us] = deeds;
        let writes = [PhaseWrite { job: theirs, deed: to_them }, PhaseWrite { job: ours, deed: to_us }];
        Some(Write::Phase(Box::new(writes)))
    }

    /// A replacement of a row as it was seen.
    fn replacing(
        &self,
        seen: usize,
        row: impl Fn(&Row) -> NewRow,
        raise_fence: bool,
        renew_birth: bool,
        audited: bool,
    ) -> Option<Pair<Replace>> {
        let (key, rows) = back(&self.seen, seen)?;
        let replace = |seen: &Row| {
            let row = row(seen);
            let audit = Audit {
                actor: "ops".to_owned(),
                from_status: seen.status.to_string(),
                to_status: row.status.to_string(),
                note: "because".to_owned(),
                old_result: seen.result.clone(),
            };
            Replace {
                key: self.keys[*key].clone(),
                expected: seen.version(),
                row,
                raise_fence,
                renew_birth,
                audit: audited.then_some(audit),
            }
        };
        Some(rows.each_ref().map(replace))
    }

    /// The name and the fences of an execution that there was.
    fn speaking(&self, by: usize, whose: Whose) -> Option<(Arc<str>, String, Pair<i64>)> {
        let (key, owner, fences) = back(&self.executions, by)?.clone();
        let key = self.keys[key].clone();
        Some(match whose {
            Whose::Own => (key, owner, fences),
            Whose::AnothersName => (key, rows::owner(9), fences),
            Whose::AnotherFence => (key, owner, fences.map(|fence| fence + 1)),
        })
    }

    async fn write(&mut self, write: Write) -> Compared {
        let (store, now) = (&self.subject.store, self.now);
        let (key, owner, theirs, ours) = match write {
            Write::Insert(insert) => {
                let ours = self.reference.insert(now, &insert);
                let theirs = store.insert(std::slice::from_ref(&insert)).await.expect("answers").remove(0);
                (insert.key, insert.row.owner, theirs, ours)
            }
            Write::Replace(replaces) => {
                let [to_them, to_us] = *replaces;
                let ours = self.reference.replace(now, &to_us);
                let theirs = store.replace(&to_them).await.expect("an answer");
                if let (true, Some(line)) = (ours.changed, &to_us.audit) {
                    self.audited(&to_us.key, line);
                }
                (to_us.key, to_us.row.owner, theirs, ours)
            }
            Write::Finish([to_them, to_us]) => {
                let ours = self.reference.finish(now, &to_us);
                let theirs = store.finish(&[to_them]).await.expect("answers").remove(0);
                (to_us.key, Some(to_us.owner), theirs, ours)
            }
            Write::Phase(writes) => {
                let [to_them, to_us] = *writes;
                let ours = self.reference.phase(now, &to_us);
                let theirs = store.phase(std::slice::from_ref(&to_them)).await.expect("answers").remove(0);
                let owner = match &to_us.deed {
                    PhaseDeed::Insert(insert) => insert.row.owner.clone(),
                    PhaseDeed::Replace(replace) => {
                        if let (true, Some(line)) = (ours.changed, &replace.audit) {
                            self.audited(&replace.key, line);
                        }
                        replace.row.owner.clone()
                    }
                    PhaseDeed::Finish(finish) => Some(finish.owner.clone()),
                };
                if ours.changed
                    && let (Answer::Written { fence }, PhaseDeed::Insert(_)) = (&theirs, &to_them.deed)
                {
                    prop_assert_eq!(*fence, to_them.job.fence, "the job's");
                }
                (to_us.key().clone(), owner, theirs, ours)
            }
            Write::Renew([to_them, to_us]) => {
                let ours = self.reference.renew(now, &to_us);
                let theirs = store.renew(&[to_them]).await.expect("answers").remove(0);
                prop_assert!(theirs != Renewal::Skipped, "nobody holds the row");
                prop_assert_eq!(theirs, ours);
                return Ok(());
            }
        };
        prop_assert_eq!(gist_of(&theirs), gist_of(&ours.answer));
        if let (Answer::Written { fence: theirs }, Answer::Written { fence: ours }, Some(owner)) =
            (theirs, ours.answer, owner)
        {
            self.executions.push((self.place(&key), owner, [theirs, ours]));
        }
        Ok(())
    }

    async fn purge(&mut self) -> Compared {
        let theirs = self.subject.store.purge(1000).await.expect("a purge");
        prop_assert_eq!(theirs, self.reference.purge(self.now).len() as u64);
        Ok(())
    }

    async fn forget(&mut self, seen: usize) -> Compared {
        let Some((key, [theirs, ours])) = back(&self.seen, seen) else { return Ok(()) };
        let (name, audit) = (self.keys[*key].clone(), super::super::fence::forgotten());
        let gone = self.reference.forget(&name, &ours.version());
        let forgotten = self.subject.store.forget(&name, &theirs.version(), &audit).await.expect("a reply");
        prop_assert_eq!(forgotten, gone);
        if gone {
            self.audited(&name, &audit);
        }
        Ok(())
    }

    fn place(&self, key: &str) -> usize {
        self.keys.iter().position(|known| **known == *key).expect("a key of this history")
    }

    fn audited(&mut self, key: &str, line: &Audit) {
        let line = line.clone();
        let old_result = line.old_result.unwrap_or_default();
        let columns = [line.actor, line.from_status, line.to_status, line.note, old_result];
        self.audit.push((self.place(key), columns));
    }

    /// Compares the rows: those that the reference left as they were are so to the microsecond, fences included.
    async fn read(&mut self) -> Compared {
        let theirs = self.subject.store.read(&self.keys).await.expect("answers");
        for (key, theirs) in theirs.into_iter().enumerate() {
            let ours = self.reference.read(self.now, &self.keys[key]);
            let shaped = |record: &Record| shape(&alike(record));
            prop_assert_eq!(theirs.as_ref().map(shaped), ours.as_deref().map(shaped));
            let (Some(theirs), Some(ours)) = (theirs, ours) else {
                self.rows.remove(&key);
                continue;
            };
            let seen = [Row::new(theirs.clone()), ours.clone()];
            let (theirs, ours) = (at_rest(theirs), ours.at(0));
            let highest = self.highest.entry(key).or_default();
            match self.rows.get(&key) {
                // A phase that is gone by itself begins anew with its job's fence.
                None if key == PHASE => {}
                None => prop_assert!(theirs.fence > *highest, "{} after {highest}", theirs.fence),
                Some((before, like)) if *like == ours => prop_assert_eq!(before, &theirs),
                Some((before, like)) => {
                    // Of fences that come from two keys, one may be as high as the other within a tick.
                    if key == PHASE {
                        prop_assert!(before.fence <= theirs.fence);
                    } else {
                        prop_assert_eq!(before.fence.cmp(&theirs.fence), like.fence.cmp(&ours.fence));
                    }
                    if like.created_at == ours.created_at {
                        prop_assert_eq!(before.created_at, theirs.created_at);
                    }
                    if like.lease_until == ours.lease_until {
                        prop_assert_eq!(before.lease_until, theirs.lease_until);
                    }
                }
            }
            *highest = theirs.fence.max(*highest);
            if self.rows.get(&key).is_none_or(|(_, like)| *like != ours) {
                self.seen.push((key, seen));
            }
            self.rows.insert(key, (theirs, ours));
        }
        Ok(())
    }

    /// Compares what a watcher finds.
    async fn watch(&self) -> Compared {
        let (foreign_stale_after, limit) = (Duration::ZERO, 10_000);
        for untold in [true, false] {
            let watch = Watch { foreign_stale_after, untold, limit };
            let found = self.subject.store.watch(&watch).await.expect("an answer");
            let found: BTreeSet<String> = found.into_iter().map(|row| row.key).collect();
            for key in &self.keys {
                let ours = self.reference.read(self.now, key).is_some_and(|row| is_watched(&row, &watch));
                prop_assert_eq!(found.contains(&**key), ours, "{}", key);
            }
        }
        Ok(())
    }

    async fn read_audit(&self) -> Compared {
        for (key, name) in self.keys.iter().enumerate() {
            let ours: Vec<_> =
                self.audit.iter().filter(|(of, _)| *of == key).map(|(_, line)| line.clone()).collect();
            prop_assert_eq!(self.subject.raw.audit(name).await, ours);
        }
        Ok(())
    }
}
