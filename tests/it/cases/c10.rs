//! SQLite: busy writers, and databases in memory.

use std::time::{Duration, Instant};

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, record::Status, with_outcome};
use idem_tests::{Child, child::Parent};
use tokio::{task::JoinSet, time::sleep};

use super::{
    call::{Fault, executed, refused, replayed, took_over},
    gate::Gate,
    site::{Connected, Site, Worker},
};

const TASKS: u32 = 16;
const KEYS: u32 = 100;

#[idempotent(key = "c10:<id>", on_stale = "retry", idem = w.idem)]
async fn job(w: &Worker, id: u32) -> Result<u32, Error> {
    w.effect(&id.to_string());
    Ok(id)
}

/// Every task claims every key, each from another one on.
async fn claim_all(w: &Worker) {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let w = w.clone();
        tasks.spawn(async move {
            for step in 0..KEYS {
                let id = (step + task * 7) % KEYS;
                match job(&w, id).await {
                    Ok(value) => assert_eq!(value, id),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::InProgress, "{error}"),
                }
            }
        });
    }
    tasks.join_all().await;
}

/// Two processes and an application of its own write to one file.
async fn many_write(site: &Site, mut application: Connected) {
    let w = site.worker().await;
    let mut child = Child::spawn(&mut site.child("cases::c10::another_process"));
    child.expect("ready");
    let writing = tokio::spawn(async move {
        for _ in 0..40 {
            application.execute("BEGIN IMMEDIATE; INSERT INTO app VALUES (1)").await;
            sleep(Duration::from_millis(10)).await;
            application.execute("COMMIT").await;
            sleep(Duration::from_millis(10)).await;
        }
    });
    child.say("go");
    claim_all(&w).await;
    child.expect("done");
    writing.await.expect("no panic");
    for id in 0..KEYS {
        assert_eq!(site.effects(&id.to_string()), 1, "key {id}");
        assert_eq!(w.row(&format!("c10:{id}")).await.status, Status::Completed);
    }
    assert_eq!(site.number("SELECT count(*) FROM app").await, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn another_process() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    parent.say("ready");
    assert_eq!(parent.hear(), "go");
    claim_all(&w).await;
    parent.say("done");
}

async fn application(site: &Site, journal: &str) -> Connected {
    let mut application = site.connection().await;
    application.execute(&format!("PRAGMA journal_mode = {journal}; CREATE TABLE app (n)")).await;
    application
}

pub(super) async fn c10_no_caller_hears_of_a_locked_database(site: &Site) {
    let application = application(site, "WAL").await;
    many_write(site, application).await;
}

pub(super) async fn c10_a_rollback_journal_is_no_trouble(site: &Site) {
    let application = application(site, "DELETE").await;
    many_write(site, application).await;
}

/// An application that reads while we come.
pub(super) async fn c10_a_reader_of_a_rollback_journal_delays_the_start_only(site: &Site) {
    let mut application = application(site, "DELETE").await;
    application.execute("BEGIN; SELECT count(*) FROM app").await;
    let reading = tokio::spawn(async move {
        sleep(Duration::from_millis(700)).await;
        application.execute("COMMIT").await;
        application
    });
    let w = site.worker().await;
    executed(job(&w, 1)).await;
    reading.await.expect("no panic").execute("INSERT INTO app VALUES (1)").await;
    replayed(job(&w, 1)).await;
}

async fn write_for(site: &Site, w: &Worker, id: &str, time: Duration) -> Result<String, Fault> {
    w.effect(id);
    let mut hand = site.connection().await;
    hand.execute(&format!("BEGIN IMMEDIATE; INSERT INTO app VALUES ('{id}')")).await;
    sleep(time).await;
    hand.execute("COMMIT").await;
    Ok(id.to_owned())
}

#[idempotent(key = "c10-alert:<id>", stale_after = "1s", idem = w.idem)]
async fn writes_alert(site: &Site, w: &Worker, id: &str, time: Duration) -> Result<String, Fault> {
    write_for(site, w, id, time).await
}

#[idempotent(key = "c10-retry:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn writes_retry(site: &Site, w: &Worker, id: &str, time: Duration) -> Result<String, Fault> {
    write_for(site, w, id, time).await
}

const TWO_LEASES: Duration = Duration::from_secs(2);

async fn in_the_table(site: &Site, id: &str) -> i64 {
    site.number(&format!("SELECT count(*) FROM app WHERE n = '{id}'")).await
}

pub(super) async fn c10_a_body_that_holds_the_write_lock_completes_late(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    drop(application(site, "WAL").await);
    let mut first = Box::pin(executed(writes_alert(site, &w, "x", TWO_LEASES)));
    let rival = async {
        other.row_such_that("c10-alert:x", "stale", |row| row.lease_until < Some(row.now)).await;
        with_outcome(writes_alert(site, &other, "x", Duration::ZERO)).await
    };
    let (value, (result, outcome)) = tokio::join!(&mut first, rival);
    assert_eq!(value, "x", "its late completion counts");
    match outcome {
        Some(Outcome::Replayed) => assert_eq!(result.expect("a replay"), "x"),
        Some(Outcome::Refused(ErrorKind::NeedsReview | ErrorKind::InProgress)) => {}
        other => panic!("{other:?} {result:?}"),
    }
    assert_eq!(replayed(writes_alert(site, &w, "x", Duration::ZERO)).await, "x");
    assert_eq!((site.effects("x"), in_the_table(site, "x").await), (1, 1));
}

pub(super) async fn c10_a_body_that_holds_the_write_lock_is_dropped_at_the_end_of_its_lease(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    drop(application(site, "WAL").await);
    let began = Instant::now();
    let first = async {
        let error = refused(ErrorKind::ClaimLost, writes_retry(site, &w, "x", 10 * TWO_LEASES)).await;
        (error, began.elapsed())
    };
    let rival = async {
        other.row_such_that("c10-retry:x", "stale", |row| row.lease_until < Some(row.now)).await;
        loop {
            match with_outcome(writes_retry(site, &other, "x", Duration::ZERO)).await {
                (Err(Fault::Idem(error)), _) if error.kind() == ErrorKind::InProgress => {}
                ended => break ended,
            }
        }
    };
    let ((_, after), (result, outcome)) = tokio::join!(first, rival);
    assert!(after < 5 * TWO_LEASES, "at the local end of its lease: {after:?}");
    assert_eq!(outcome, Some(Outcome::TookOver), "{result:?}");
    assert_eq!(site.effects("x"), 2);
    assert_eq!(in_the_table(site, "x").await, 1, "the dropped one was rolled back");
}

#[idempotent(key = "c10-memory:<space>:<id>", on_busy = "wait", idem = w.idem)]
async fn waits(w: &Worker, space: &str, id: u32) -> Result<u32, Error> {
    w.effect(&format!("memory {space} {id}"));
    tokio::task::yield_now().await;
    Ok(id)
}

#[idempotent(key = "c10-stop:<id>", stale_after = "1s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn stops(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect(&format!("stop {id}"));
    gate.pass().await;
    Ok(id)
}

pub(super) async fn c10_a_database_in_memory_is_one_and_stays(site: &Site) {
    for (space, url) in
        [("a", "sqlite::memory:"), ("b", "sqlite://:memory:"), ("c", "sqlite://c10?mode=memory")]
    {
        let w = site.worker_by(|builder| builder.url(url).connections(5).namespace(space)).await;
        one_table_for_all(site, &w, space).await;
    }
    assert!(!std::path::Path::new("c10").exists(), "no file of that name");
}

async fn one_table_for_all(site: &Site, w: &Worker, space: &str) {
    for id in 0..3 {
        let mut callers = JoinSet::new();
        for _ in 0..20 {
            let (w, space) = (w.clone(), space.to_owned());
            callers.spawn(async move { waits(&w, &space, id).await });
        }
        for value in callers.join_all().await {
            assert_eq!(value.expect("one table for all"), id);
        }
        assert_eq!(site.effects(&format!("memory {space} {id}")), 1);
    }
    sleep(Duration::from_secs(1)).await;
    for id in 0..3 {
        assert_eq!(replayed(waits(w, space, id)).await, id, "after a rest");
    }
    let gate = Gate::new();
    let mut first = Box::pin(stops(w, 1, &gate));
    gate.stops(&mut first).await;
    w.row_such_that("c10-stop:1", "stale", |row| row.lease_until < Some(row.now)).await;
    let heir = Gate::new();
    heir.open();
    assert_eq!(took_over(stops(w, 1, &heir)).await, 1);
}

/// Statements that nobody waits for any more close no connection that the database lives by.
pub(super) async fn c10_a_database_in_memory_survives_callers_that_give_up(site: &Site) {
    let w = site.worker_by(|builder| builder.url("sqlite::memory:")).await;
    executed(waits(&w, "x", 1_000)).await;
    for id in 0..200 {
        let limit = Duration::from_micros(u64::from(id) * 10);
        let _ = tokio::time::timeout(limit, waits(&w, "x", id)).await;
    }
    assert_eq!(replayed(waits(&w, "x", 1_000)).await, 1_000);
    for id in 0..200 {
        match waits(&w, "x", id).await {
            Ok(value) => assert_eq!(value, id),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NeedsReview, "dropped in the body: {error}"),
        }
        assert_eq!(site.effects(&format!("memory x {id}")), 1);
    }
}

/// The body's own transaction has the database: a job inside of it cannot be claimed, and says so in time.
pub(super) async fn c10_a_job_inside_a_write_transaction_is_refused_in_time(site: &Site) {
    let w = site.worker_by(|builder| builder.store_timeout(Duration::from_millis(700))).await;
    let mut hand = application(site, "WAL").await;
    executed(job(&w, 0)).await;
    hand.execute("BEGIN IMMEDIATE; INSERT INTO app VALUES (1)").await;
    let error = refused(ErrorKind::Store, job(&w, 1)).await;
    assert!(error.is_retryable());
    assert_eq!(replayed(job(&w, 0)).await, 0, "what is done is read beside it");
    hand.execute("COMMIT").await;
    assert_eq!(executed(job(&w, 1)).await, 1);
    assert_eq!(site.effects("1"), 1);
}
