//! Every store beside the one in memory, which is the model: what the one answers, the other answers.

use std::{sync::Arc, time::Duration};

use idem_runtime::{
    __private::{Job, OnStale},
    record::{Decision, Status, Terms, Version, decide},
    store::{Answer, Ending, Moment, NewRow, Renew, Replace, Store, memory::MemoryStore},
};

use super::{
    foreign::terms,
    rows::{self, gist, shape, written},
    subject::{self, Subject},
};

const STATUSES: [&str; 6] = ["processing", "completed", "failed", "released", "needs_review", "paused"];

pub(super) async fn each_row_is_decided_as_the_models(s: &Subject) {
    static RETRY: Job = Job::lock_first("a", &["billing:", ""], "app", "app.rs", 1).on_stale(OnStale::Retry);
    static ALERT: Job = Job::lock_first("a", &["billing:", ""], "app", "app.rs", 1).on_stale(OnStale::Alert);
    static AFTER: Job = Job::record_after("a", &["billing:", ""], "app", "app.rs", 1);
    static OTHER: Job = Job::lock_first("a", &["refund:", ""], "app", "app.rs", 2);

    let moments = [Moment::Never, Moment::At(rows::PAST), Moment::In(rows::HOUR)];
    let mut batch = Vec::new();
    for status in STATUSES {
        for lease in moments {
            for expires in moments {
                for owner in [None, Some(rows::owner(1))] {
                    for on_stale in [None, Some("retry"), Some("alert"), Some("tomorrow")] {
                        for (fingerprint, takeovers) in [(None, 0), (Some("a".to_owned()), 9)] {
                            let row = NewRow {
                                status: Status::from(status),
                                template: Some("billing:<>".to_owned()),
                                lease,
                                expires,
                                owner: owner.clone(),
                                on_stale: on_stale.map(ToOwned::to_owned),
                                fingerprint,
                                takeovers,
                                ..rows::claim(1)
                            };
                            batch.push(rows::insert(&format!("billing:{}", batch.len()), row));
                        }
                    }
                }
            }
        }
    }
    let model = MemoryStore::default();
    let keys: Vec<Arc<str>> = batch.iter().map(|item| item.key.clone()).collect();
    for store in [&*s.store, &model as &dyn Store] {
        for answer in store.insert(&batch).await.expect("answers") {
            written(answer);
        }
    }
    let theirs = s.store.read(&keys).await.expect("answers");
    let ours = model.read(&keys).await.expect("answers");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let (theirs, ours) = (theirs.as_ref().expect("a row"), ours.as_ref().expect("a row"));
        for job in [&RETRY, &ALERT, &AFTER, &OTHER] {
            for fingerprint in [None, Some("a"), Some("b")] {
                let terms = Terms { fingerprint, ..terms(job) };
                let [theirs, ours] =
                    [theirs, ours].map(|record| roughly(decide(Some(record), record.now, &terms)));
                assert_eq!(theirs, ours, "{job:?}");
            }
        }
    }
}

/// A decision without the microseconds.
fn roughly(decision: Decision) -> Decision {
    match decision {
        Decision::Busy { retry_after: Some(_) } => Decision::Busy { retry_after: Some(Duration::ZERO) },
        other => other,
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// What both stores said, each in its own numbers: `[subject, model]`.
#[derive(Default)]
struct Memory {
    fences: Vec<(String, u8, [i64; 2])>,
    versions: Vec<(String, [Version; 2])>,
}

pub(super) async fn a_long_history_reads_as_the_models(s: &Subject) {
    let model: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let stores = [s.store.clone(), model];
    let mut dice = Dice(0x1dea);
    let mut memory = Memory::default();
    let keys = ["a", "b", "c", "d"];
    for step in 0..600 {
        let key = dice.of(&keys);
        let n = u8::try_from(dice.below(3)).expect("small");
        match dice.below(10) {
            0..=2 => insert(&stores, &mut dice, &mut memory, key, n).await,
            3..=4 => replace(&stores, &mut dice, &mut memory, n).await,
            5..=6 => finish(&stores, &mut dice, &mut memory).await,
            7 => renew(&stores, &mut dice, &memory).await,
            8 => {
                let [theirs, ours] = &stores;
                let purged = theirs.purge(1000).await.expect("a purge");
                assert_eq!(purged, ours.purge(1000).await.expect("a purge"), "step {step}");
            }
            _ => forget(&stores, &mut dice, &memory).await,
        }
        let keys: Vec<Arc<str>> = keys.map(Into::into).to_vec();
        let [theirs, ours] =
            [stores[0].read(&keys).await.expect("answers"), stores[1].read(&keys).await.expect("answers")];
        for ((theirs, ours), key) in theirs.into_iter().zip(ours).zip(&keys) {
            assert_eq!(theirs.as_ref().map(shape), ours.as_ref().map(shape), "step {step}");
            if let (Some(theirs), Some(ours)) = (theirs, ours) {
                memory.versions.push((key.to_string(), [theirs.version(), ours.version()]));
            }
        }
    }
}

fn alike(theirs: &Answer, ours: &Answer) -> Option<[i64; 2]> {
    assert_eq!(gist(theirs), gist(ours));
    match (theirs, ours) {
        (Answer::Written { fence: theirs }, Answer::Written { fence: ours }) => Some([*theirs, *ours]),
        _ => None,
    }
}

fn row(dice: &mut Dice, n: u8) -> NewRow {
    let moments = [Moment::Never, Moment::At(rows::PAST), Moment::In(rows::HOUR)];
    NewRow {
        status: Status::from(dice.of(&STATUSES)),
        lease: dice.of(&moments),
        expires: dice.of(&moments),
        attempt: 2,
        error: dice.of(&[None, Some("earlier".to_owned())]),
        ..rows::claim(n)
    }
}

async fn insert(stores: &[Arc<dyn Store>; 2], dice: &mut Dice, memory: &mut Memory, key: &str, n: u8) {
    let batch = [rows::insert(key, row(dice, n))];
    let [theirs, ours] =
        [stores[0].insert(&batch).await.expect("answers"), stores[1].insert(&batch).await.expect("answers")];
    if let Some(fences) = alike(&theirs[0], &ours[0]) {
        memory.fences.push((key.to_owned(), n, fences));
    }
}

/// One of the last things remembered, so that half of the writes still meet what they expect.
fn recent<T: Clone>(dice: &mut Dice, remembered: &[T], back: usize) -> Option<T> {
    let back = dice.below(back) + 1;
    remembered.len().checked_sub(back).map(|at| remembered[at].clone())
}

async fn replace(stores: &[Arc<dyn Store>; 2], dice: &mut Dice, memory: &mut Memory, n: u8) {
    let Some((key, versions)) = recent(dice, &memory.versions, 6) else { return };
    let (row, raise_fence, renew_birth) = (row(dice, n), dice.below(2) == 0, dice.below(2) == 0);
    let [theirs, ours] = versions.map(|expected| Replace {
        key: key.as_str().into(),
        expected,
        row: row.clone(),
        raise_fence,
        renew_birth,
        audit: None,
    });
    let [theirs, ours] = [
        stores[0].replace(&theirs).await.expect("an answer"),
        stores[1].replace(&ours).await.expect("an answer"),
    ];
    if let Some(fences) = alike(&theirs, &ours) {
        memory.fences.push((key, n, fences));
    }
}

async fn finish(stores: &[Arc<dyn Store>; 2], dice: &mut Dice, memory: &mut Memory) {
    let Some((key, n, fences)) = recent(dice, &memory.fences, 4) else { return };
    let ending = dice.of(&[
        rows::completed(Some("1")),
        Ending::Completed { result: None, ttl: Some(Duration::ZERO) },
        rows::failed("no"),
        rows::released(None),
        Ending::Released { error: Some("no".to_owned()), purge_after: Duration::ZERO, withdrawn: true },
        rows::held(Some("time-out")),
    ]);
    let [theirs, ours] = fences.map(|fence| [subject::finish(&key, n, fence, ending.clone())]);
    let [theirs, ours] =
        [stores[0].finish(&theirs).await.expect("answers"), stores[1].finish(&ours).await.expect("answers")];
    if let Some(fences) = alike(&theirs[0], &ours[0]) {
        memory.fences.push((key, n, fences));
    }
}

async fn renew(stores: &[Arc<dyn Store>; 2], dice: &mut Dice, memory: &Memory) {
    let Some((key, n, fences)) = recent(dice, &memory.fences, 4) else { return };
    let [theirs, ours] = fences
        .map(|fence| [Renew { key: key.as_str().into(), owner: rows::owner(n), fence, lease: rows::LEASE }]);
    let theirs = stores[0].renew(&theirs).await.expect("answers");
    assert_eq!(theirs, stores[1].renew(&ours).await.expect("answers"));
}

async fn forget(stores: &[Arc<dyn Store>; 2], dice: &mut Dice, memory: &Memory) {
    let Some((key, [theirs, ours])) = recent(dice, &memory.versions, 6) else { return };
    let audit = super::fence::forgotten();
    let gone = stores[0].forget(&key, &theirs, &audit).await.expect("a reply");
    assert_eq!(gone, stores[1].forget(&key, &ours, &audit).await.expect("a reply"));
}
