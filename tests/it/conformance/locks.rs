//! Rows that a foreign transaction holds, where a database locks rows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use idem_runtime::{
    ErrorKind, Idem, Probe, Resolution, idempotent,
    record::{Status, micros},
    store::{Answer, Ending, ErrorClass, Moment, NewRow, Renew, Renewal, StoreError},
};

use tokio::sync::Semaphore;

use super::{
    call::{Fault, Runs, body_fails, failed, refused},
    phase::{self, ended_with_phases, left, under},
    raw::{Raw, quoted},
    rows::{self, LEASE, at_rest, found, written},
    subject::{self, Subject, answered},
};

/// What a store takes at most before it gives a locked row up; far more than the 50 ms of the contract on a machine
/// that is busy with other tests, far less than a wait for the lock.
const SOON: Duration = Duration::from_secs(2);

/// The longest that one statement waits for a lock; so much older than the write may its time be.
const WAIT: Duration = Duration::from_millis(50);

async fn lock(s: &Subject, key: &str) {
    s.raw.execute("BEGIN").await;
    s.raw
        .execute(format!("SELECT \"key\" FROM idempotency_keys WHERE \"key\" = {} FOR UPDATE", quoted(key)))
        .await;
}

async fn unlock(s: &Subject) {
    s.raw.execute("COMMIT").await;
}

async fn is_locked<T: std::fmt::Debug>(write: impl Future<Output = Result<T, StoreError>>) {
    let began = Instant::now();
    let error = write.await.expect_err("the row is locked");
    assert_eq!(error.class, ErrorClass::Locked, "{error}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[allow(clippy::unused_async, reason = "a probe is as its job wants it")]
async fn nobody_knows(_: &u32) -> Probe<()> {
    Probe::Unknown
}

#[idempotent(key = "locks-asked:<id>", on_stale = probe(nobody_knows), idem = idem)]
async fn asked(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    if runs.enter() == 1 { body_fails("time-out") } else { Ok(()) }
}

pub(super) async fn what_a_person_freed_stays_free_when_its_claim_is_given_back(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(asked(1, &idem, &runs).await);
    assert_eq!(refused(asked(1, &idem, &runs).await), ErrorKind::NeedsReview);
    idem.resolve("locks-asked:1", Resolution::Retry).await.expect("freed");

    // A claim that is granted only when its process has begun to leave.
    lock(s, "locks-asked:1").await;
    let leaving = s.idem().await;
    let call = asked(1, &leaving, &runs);
    let left = async {
        tokio::time::sleep(SOON / 10).await;
        leaving.shutdown(Duration::ZERO).await;
        unlock(s).await;
    };
    let (answer, ()) = tokio::join!(call, left);
    assert_eq!(refused(answer), ErrorKind::ShuttingDown);
    while s.row("locks-asked:1").await.status == Status::Processing {
        tokio::time::sleep(WAIT / 10).await;
    }
    assert_eq!(s.row("locks-asked:1").await.status, Status::Released);
    asked(1, &idem, &runs).await.expect("nobody is asked about what a person freed");
    assert_eq!(runs.count(), 2);
}

pub(super) async fn a_locked_row_delays_its_own_ending_alone(s: &Subject) {
    let mut batch = Vec::new();
    for n in 1..=5 {
        let key = format!("billing:{n}");
        let fence = s.claim(&key, n).await;
        batch.push(subject::finish(&key, n, fence, rows::completed(Some("1"))));
    }
    lock(s, "billing:3").await;
    is_locked(s.store.finish(&batch)).await;
    for (n, finish) in batch.iter().enumerate() {
        assert_eq!(s.row(&finish.key).await.status, Status::Processing, "nothing was changed");
        let alone = std::slice::from_ref(finish);
        if n == 2 {
            is_locked(s.store.finish(alone)).await;
        } else {
            written(s.store.finish(alone).await.expect("an answer").remove(0));
        }
    }
    unlock(s).await;
    for answer in s.store.finish(&batch).await.expect("answers") {
        written(answer);
    }
}

pub(super) async fn a_key_that_is_being_inserted_delays_its_own_claim_alone(s: &Subject) {
    s.raw.execute("BEGIN").await;
    s.raw.begin_by_hand("billing:3").await;
    let batch: Vec<_> = (1..=5).map(|n| rows::insert(&format!("billing:{n}"), rows::claim(n))).collect();
    is_locked(s.store.insert(&batch)).await;
    for (n, insert) in batch.iter().enumerate() {
        let alone = std::slice::from_ref(insert);
        if n == 2 {
            is_locked(s.store.insert(alone)).await;
        } else {
            assert_eq!(s.read(&insert.key).await, None, "nothing was changed");
            written(s.store.insert(alone).await.expect("an answer").remove(0));
        }
    }
    s.raw.execute("COMMIT").await;
    assert_eq!(found(s.insert("billing:3", rows::claim(3)).await).owner, None, "theirs was first");
}

pub(super) async fn a_key_whose_insert_is_rolled_back_is_free(s: &Subject) {
    s.raw.execute("BEGIN").await;
    s.raw.begin_by_hand("billing:1").await;
    is_locked(s.store.insert(&[rows::insert("billing:1", rows::claim(1))])).await;
    s.raw.execute("ROLLBACK").await;
    s.claim("billing:1", 1).await;
}

pub(super) async fn a_locked_row_cannot_be_taken_over_yet(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let stale = s.row("billing:1").await;
    lock(s, "billing:1").await;
    is_locked(s.store.replace(&rows::takeover(&stale, 2))).await;
    unlock(s).await;
    written(s.replace(&rows::takeover(&stale, 2)).await);
}

pub(super) async fn a_locked_row_is_read_and_found_without_waiting(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, fence, rows::completed(Some("7"))).await);
    s.claim("billing:2", 2).await;
    lock(s, "billing:1").await;
    assert_eq!(s.row("billing:1").await.result.as_deref(), Some("7"));
    assert_eq!(found(s.insert("billing:1", rows::claim(3)).await).result.as_deref(), Some("7"));
    let batch = ["billing:1", "billing:2", "billing:3"].map(|key| rows::insert(key, rows::claim(3)));
    let answers = s.store.insert(&batch).await.expect("answers");
    assert!(
        matches!(answers[..], [Answer::Found(_), Answer::Found(_), Answer::Written { .. }]),
        "{answers:?}"
    );
    unlock(s).await;
}

pub(super) async fn heartbeats_pass_over_a_locked_row(s: &Subject) {
    let mut batch = Vec::new();
    for n in 1..=3 {
        let key = format!("billing:{n}");
        let fence = s.stale_claim(&key, n).await;
        batch.push(Renew { key: key.into(), owner: rows::owner(n), fence, lease: LEASE });
    }
    let locked = at_rest(s.row("billing:2").await);
    lock(s, "billing:2").await;
    let renewals = s.store.renew(&batch).await.expect("answers");
    assert_eq!(renewals, [Renewal::Renewed, Renewal::Skipped, Renewal::Renewed]);
    assert_eq!(s.store.renew(&batch[1..2]).await.expect("an answer"), [Renewal::Skipped]);
    assert_eq!(at_rest(s.row("billing:2").await), locked);
    unlock(s).await;
    assert_eq!(s.store.renew(&batch[1..2]).await.expect("an answer"), [Renewal::Renewed]);
}

pub(super) async fn purging_passes_over_locked_rows(s: &Subject) {
    let expired = NewRow { expires: Moment::At(rows::PAST), ..rows::in_state(Status::Completed, 1) };
    for n in 1..=3 {
        written(s.insert(&format!("billing:{n}"), expired.clone()).await);
    }
    lock(s, "billing:2").await;
    assert_eq!(s.store.purge(10).await.expect("a purge"), 2);
    unlock(s).await;
    assert!(s.read("billing:2").await.is_some());
    assert_eq!(s.store.purge(10).await.expect("a purge"), 1);
}

pub(super) async fn purging_looks_behind_locked_rows(s: &Subject) {
    for (n, expires) in (1..=4).zip([10, 20, 30, 40]) {
        let expired = NewRow { expires: Moment::At(expires), ..rows::in_state(Status::Completed, 1) };
        written(s.insert(&format!("billing:{n}"), expired).await);
    }
    s.raw.execute("BEGIN").await;
    // Each by its key: of both at once the server may think that a scan, which locks all four, is as good.
    for key in ["billing:1", "billing:2"] {
        let held = format!("SELECT status FROM idempotency_keys WHERE \"key\" = {} FOR UPDATE", quoted(key));
        s.raw.execute(held).await;
    }
    assert_eq!(s.store.purge(2).await.expect("a purge"), 2, "the first two are held");
    assert_eq!(s.store.purge(2).await.expect("a purge"), 0);
    unlock(s).await;
    assert_eq!(s.store.purge(2).await.expect("a purge"), 2);
}

pub(super) async fn a_phase_of_a_locked_job_is_locked_and_changes_nothing(s: &Subject) {
    let job = under("billing:1", 1, s.claim("billing:1", 1).await);
    let other = under("billing:2", 2, s.claim("billing:2", 2).await);
    written(phase::send(s, &phase::insert(&job, "x", rows::claim(1))).await);
    let batch = [
        phase::insert(&other, "x", rows::claim(2)),
        phase::insert(&job, "y", rows::claim(1)),
        phase::finish(&job, "x", 1, job.fence, rows::completed(None)),
    ];
    for locked in ["billing:1", "billing:1/x"] {
        let before = s.store.between("", "~", 10).await.expect("rows").into_iter().map(at_rest);
        let before: Vec<_> = before.collect();
        lock(s, locked).await;
        is_locked(s.store.phase(&batch)).await;
        is_locked(s.store.phase(&batch[2..])).await;
        if locked == "billing:1" {
            is_locked(s.store.phase(&batch[1..2])).await;
        }
        let after = s.store.between("", "~", 10).await.expect("rows").into_iter().map(at_rest);
        assert_eq!(after.collect::<Vec<_>>(), before, "nothing was changed");
        unlock(s).await;
    }
    for answer in s.store.phase(&batch).await.expect("answers") {
        written(answer);
    }
}

pub(super) async fn purging_passes_over_a_job_while_a_row_of_it_is_locked(s: &Subject) {
    let mut jobs = Vec::new();
    for n in 1..=3 {
        jobs.push(ended_with_phases(s, &format!("billing:{n}"), n, "completed").await);
    }
    for (locked, others) in [("billing:2/a", 2), ("billing:2", 0), ("billing:2/z", 0)] {
        lock(s, locked).await;
        let began = Instant::now();
        assert_eq!(s.store.purge(10).await.expect("a purge"), others, "{locked}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        unlock(s).await;
        assert_eq!(left(&*s.store, &jobs[1]).await, 3, "{locked}");
        assert!(s.read("billing:2").await.is_some(), "{locked}");
        assert_eq!(left(&*s.store, &jobs[0]).await + left(&*s.store, &jobs[2]).await, 0, "{locked}");
    }
    assert_eq!(s.store.purge(10).await.expect("a purge"), 1);
    assert_eq!(left(&*s.store, &jobs[1]).await, 0);
}

/// Lets a write meet a lock, again and again, and then the lock go; the database's time when it went.
async fn after_a_wait<T: Send + 'static>(
    s: &Subject,
    write: impl Future<Output = T> + Send + 'static,
) -> (i64, T) {
    let write = tokio::spawn(write);
    tokio::time::sleep(4 * WAIT).await;
    assert!(!write.is_finished(), "the row is locked");
    let free = s.raw.clock().await;
    s.raw.execute("ROLLBACK").await;
    (free, write.await.expect("no panic"))
}

pub(super) async fn a_lease_counts_from_the_write_and_not_from_the_wait_before_it(s: &Subject) {
    s.raw.execute("BEGIN").await;
    s.raw.begin_by_hand("billing:1").await;
    let store = s.store.clone();
    let batch = ["billing:0", "billing:1"].map(|key| rows::insert(key, rows::claim(1)));
    let (free, _) = after_a_wait(s, async move { answered(|| store.insert(&batch)).await }).await;
    let read = s.row("billing:1").await;
    assert!(read.lease_until >= Some(free - micros(WAIT) + micros(LEASE)), "{read:?} {free}");
    assert!(read.fence >= free - micros(WAIT), "{read:?} {free}");
}

pub(super) async fn a_phase_counts_from_the_write_and_not_from_the_wait_before_it(s: &Subject) {
    let job = under("billing:1", 1, s.claim("billing:1", 1).await);
    lock(s, "billing:1").await;
    let store = s.store.clone();
    let batch = [phase::insert(&job, "x", rows::claim(1))];
    let (free, _) = after_a_wait(s, async move { answered(|| store.phase(&batch)).await }).await;
    let [read, job] = [s.row("billing:1/x").await, s.row("billing:1").await];
    assert!(read.lease_until >= Some(free - micros(WAIT) + micros(LEASE)), "{read:?} {free}");
    assert!(job.lease_until >= Some(free - micros(WAIT) + micros(rows::HOUR)), "{job:?} {free}");
}

pub(super) async fn a_completion_counts_from_the_write_and_not_from_the_wait_before_it(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    lock(s, "billing:1").await;
    let store = s.store.clone();
    let ending = Ending::Completed { result: None, ttl: Some(LEASE) };
    let finish = [subject::finish("billing:1", 1, fence, ending)];
    let (free, answers) = after_a_wait(s, async move { answered(|| store.finish(&finish)).await }).await;
    assert_eq!(answers, [Answer::Written { fence }]);
    let read = s.row("billing:1").await;
    assert!(read.completed_at >= Some(free - micros(WAIT)), "{read:?} {free}");
    assert!(read.expires_at >= Some(free - micros(WAIT) + micros(LEASE)), "{read:?} {free}");
}

pub(super) async fn a_takeover_counts_from_the_write_and_not_from_the_wait_before_it(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let replacement = rows::takeover(&s.row("billing:1").await, 2);
    lock(s, "billing:1").await;
    let store = s.store.clone();
    let (free, answer) = after_a_wait(s, async move { answered(|| store.replace(&replacement)).await }).await;
    let read = s.row("billing:1").await;
    assert!(read.lease_until >= Some(free - micros(WAIT) + micros(LEASE)), "{read:?} {free}");
    assert!(written(answer) >= free - micros(WAIT));
}

#[idempotent(key = "conf-locked:<id>", idem = idem)]
async fn meets_a_lock(id: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(id)
}

pub(super) async fn calls_of_other_keys_go_on_beside_a_locked_one(s: &Subject) {
    let (idem, runs) = (s.idem().await, Arc::new(Runs::default()));
    s.raw.execute("BEGIN").await;
    s.raw.begin_by_hand("conf-locked:0").await;
    let call = |id| {
        let (idem, runs) = (idem.clone(), Arc::clone(&runs));
        tokio::spawn(async move { meets_a_lock(id, &idem, &runs).await })
    };
    let locked = call(0);
    for other in (1..=20).map(call).collect::<Vec<_>>() {
        other.await.expect("no panic").expect("done");
    }
    assert!(!locked.is_finished(), "it waits for the lock, alone");
    s.raw.execute("ROLLBACK").await;
    assert_eq!(locked.await.expect("no panic").expect("done"), 0);
    assert_eq!(runs.count(), 21);
}

/// One heartbeat a second.
#[idempotent(key = "conf-beside:<id>", stale_after = "3s", idem = idem)]
async fn lasts(id: u32, idem: &Idem, runs: &Runs, open: &Semaphore) -> Result<u32, Fault> {
    runs.enter();
    open.acquire().await.expect("never closed").forget();
    Ok(id)
}

pub(super) async fn a_transaction_that_sits_on_20_keys_costs_no_other_key_its_lease(s: &Subject) {
    let patient = s.builder().store_timeout(Duration::from_mins(5)).connect().await;
    let (idem, runs) = (patient.expect("an `Idem`"), Arc::new(Runs::default()));
    let open = Arc::new(Semaphore::new(0));
    let running: Vec<_> = (0..10)
        .map(|id| {
            let (idem, runs, open) = (idem.clone(), Arc::clone(&runs), Arc::clone(&open));
            tokio::spawn(async move { lasts(id, &idem, &runs, &open).await })
        })
        .collect();
    let call = |id| {
        let (idem, runs) = (idem.clone(), Arc::clone(&runs));
        tokio::spawn(async move { meets_a_lock(id, &idem, &runs).await })
    };
    while runs.count() < 10 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    s.raw.execute("BEGIN").await;
    for id in 100..120 {
        s.raw.begin_by_hand(&format!("conf-locked:{id}")).await;
    }
    let locked: Vec<_> = (100..120).map(call).collect();
    // Longer than a lease, for each of those that run.
    let mut ends = Vec::new();
    for id in 0..10 {
        let key = format!("conf-beside:{id}");
        let end = s.row(&key).await.lease_until.map(|until| until + micros(Duration::from_secs(3)));
        ends.push((key, end));
    }
    let mut others = 1_000..;
    for (key, end) in ends {
        loop {
            let row = s.row(&key).await;
            assert!(row.lease_until > Some(row.now), "{row:?}");
            if row.lease_until >= end {
                break;
            }
            call(others.next().expect("no end")).await.expect("no panic").expect("done");
        }
    }
    assert!(locked.iter().all(|call| !call.is_finished()), "each waits for its own lock");
    open.add_permits(10);
    for job in running {
        job.await.expect("no panic").expect("its claim was never lost");
    }
    s.raw.execute("ROLLBACK").await;
    for call in locked {
        call.await.expect("no panic").expect("done");
    }
}

pub(super) async fn sessions_in_other_time_zones_mean_the_same_moments(s: &Subject) {
    let kolkata = match s.raw {
        Raw::Mysql(_) => "SET time_zone = '+05:30'",
        _ => "SET TIME ZONE 'Asia/Kolkata'",
    };
    s.raw.execute(kolkata).await;
    let before = s.raw.clock().await;
    s.raw.begin_by_hand("billing:1").await;
    s.raw.complete_by_hand("billing:1").await;
    let after = s.raw.clock().await;
    let read = s.row("billing:1").await;
    assert!((before..=after).contains(&read.created_at), "{read:?} {before}");
    assert!((before..=after).contains(&read.completed_at.expect("a moment")), "{read:?}");
}

pub(super) async fn batches_in_opposite_orders_do_not_lock_each_other_out(s: &Subject) {
    let keys: Vec<Arc<str>> = (0..40).map(|n| format!("billing:{n}").into()).collect();
    let mut renewals = Vec::new();
    for key in &keys {
        let fence = s.claim(key, 1).await;
        renewals.push(Renew { key: key.clone(), owner: rows::owner(1), fence, lease: LEASE });
    }
    let finishes: Vec<_> =
        renewals.iter().map(|renew| subject::finish(&renew.key, 1, renew.fence, rows::held(None))).collect();
    let stores = [s.another(), s.another(), s.another()];
    let rounds = subject::race((0..6).map(|n| {
        let store = stores[n % 3].clone();
        let mut batch = finishes.clone();
        if n % 2 == 1 {
            batch.reverse();
        }
        async move {
            let mut deadlocks = 0;
            for _ in 0..10 {
                if let Err(error) = store.finish(&batch).await {
                    deadlocks += usize::from(format!("{error:?}").contains("deadlock"));
                }
            }
            deadlocks
        }
    }))
    .await;
    assert_eq!(rounds.iter().sum::<usize>(), 0, "rows are taken in the order of their keys");
}
