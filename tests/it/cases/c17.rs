//! Shutdown and leftovers: nothing panics on the way out, nothing goes on that has ended, and every test and every
//! runtime has what is its own.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use idem_runtime::{Error, ErrorKind, Idem, idempotent, record::Status};
use idem_tests::{Child, child::Parent};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    time::{sleep, timeout},
};

use super::{
    call::{Fault, executed, refused, replayed, took_over},
    gate::Gate,
    site::{Site, Worker, at_rest},
};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[idempotent(key = "c17:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn pending(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

#[idempotent(key = "c17-alert:<id>", idem = w.idem)]
async fn pending_alert(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

pub(super) async fn c17_a_runtime_that_goes_leaves_its_jobs_to_their_policy(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let leaving = runtime();
    for alert in [false, true] {
        let (w, gate) = (w.clone(), gate.clone());
        leaving.spawn(async move {
            if alert { pending_alert(&w, "x", &gate).await } else { pending(&w, "x", &gate).await }
        });
    }
    gate.arrived().await;
    gate.arrived().await;
    thread::spawn(move || drop(leaving)).join().expect("no panic");
    gate.open();
    assert_eq!(took_over(pending(&w, "x", &gate)).await, "x", "stale at once");
    refused(ErrorKind::NeedsReview, pending_alert(&w, "x", &gate)).await;
    assert_eq!(site.effects("x"), 3);
}

/// The runtime goes while the completion is on its way: the effect happened, and it is recorded.
pub(super) async fn c17_a_runtime_that_goes_during_a_completion_loses_nothing(site: &Site) {
    let w = site.worker().await;
    for round in 0..20 {
        let id = format!("round-{round}");
        let (leaving, gate) = (runtime(), Gate::new());
        leaving.spawn({
            let (w, id, gate) = (w.clone(), id.clone(), gate.clone());
            async move { pending_alert(&w, &id, &gate).await }
        });
        gate.arrived().await;
        gate.open();
        thread::sleep(Duration::from_micros(100 * round));
        thread::spawn(move || drop(leaving)).join().expect("no panic");
        let key = format!("c17-alert:{id}");
        let ended =
            |row: &idem_runtime::Record| row.status == Status::Completed || row.lease_until <= Some(row.now);
        let row = w.row_such_that(&key, "ended", ended).await;
        // Either its body was dropped at the gate, or it ended, and then that counts.
        if row.status == Status::Completed {
            assert_eq!(replayed(pending_alert(&w, &id, &gate)).await, id);
        } else {
            refused(ErrorKind::NeedsReview, pending_alert(&w, &id, &gate)).await;
        }
        assert_eq!(site.effects(&id), 1);
    }
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn a_test_that_fails() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { pending(&w, "failing", &gate).await }
    });
    gate.arrived().await;
    parent.say("entered");
    assert!(running.is_finished(), "on purpose");
}

pub(super) async fn c17_a_test_that_fails_with_a_pending_job_fails_by_itself(site: &Site) {
    let w = site.worker().await;
    let mut child = Child::spawn(&mut site.child("cases::c17::a_test_that_fails"));
    child.expect("entered");
    let status = child.wait();
    assert_eq!(status.code(), Some(101), "a failed test, no abort: {}", child.transcript());
    let transcript = child.transcript();
    assert_eq!(transcript.matches("panicked at").count(), 1, "one panic: {transcript}");
    site.set("c17:failing", "lease_until = 1").await;
    let gate = Gate::new();
    gate.open();
    assert_eq!(took_over(pending(&w, "failing", &gate)).await, "failing");
}

/// How a body ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Value,
    Error,
    Panic,
    Dropped,
}

#[idempotent(key = "c17-many:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn many(w: &Worker, id: u32, end: End) -> Result<u32, Fault> {
    w.effect("many");
    match end {
        End::Value => Ok(id),
        End::Error => Err(Fault::own("down")),
        // A panic that the log says nothing of.
        End::Panic => std::panic::resume_unwind(Box::new("on purpose")),
        End::Dropped => std::future::pending().await,
    }
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

pub(super) async fn c17_nothing_goes_on_when_a_thousand_jobs_have_ended(site: &Site) {
    let w = site.worker().await;
    executed(many(&w, 0, End::Value)).await;
    let before = Handle::current().metrics().num_alive_tasks();
    for id in 1..=200 {
        executed(many(&w, id, End::Value)).await;
        replayed(many(&w, id, End::Value)).await;
        many(&w, 1_000 + id, End::Error).await.expect_err("its own");
        let spawned = w.clone();
        tokio::spawn(async move { many(&spawned, 2_000 + id, End::Panic).await }).await.expect_err("a panic");
        let dropped = timeout(Duration::from_millis(1), many(&w, 3_000 + id, End::Dropped)).await;
        assert!(dropped.is_err());
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before, "no task of ours in their runtime");

    let keys = ["c17-many:200", "c17-many:1200", "c17-many:2200"];
    let mut rows = Vec::new();
    for key in keys {
        rows.push(at_rest(w.row(key).await));
    }
    sleep(Duration::from_secs(3)).await;
    for (key, row) in keys.into_iter().zip(rows) {
        assert_eq!(at_rest(w.row(key).await), row, "not touched any more");
    }
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn counts_its_threads() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    executed(many(&w, 1, End::Value)).await;
    let before = threads();
    for id in 2..50 {
        executed(many(&w, id, End::Value)).await;
    }
    assert_eq!(threads(), before, "no thread a job");
    drop(w);
    let patience = Instant::now() + Duration::from_secs(20);
    while threads() > before.saturating_sub(1) {
        assert!(Instant::now() < patience, "its threads go with the last handle");
        sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..5 {
        let w = Worker::of_parent().await;
        replayed(many(&w, 1, End::Value)).await;
    }
    while threads() > before {
        assert!(Instant::now() < patience, "of every handle");
        sleep(Duration::from_millis(5)).await;
    }
    parent.say("counted");
}

pub(super) async fn c17_threads_go_with_their_handle(site: &Site) {
    drop(site.worker().await);
    let mut child = Child::spawn(&mut site.child("cases::c17::counts_its_threads"));
    child.expect("counted");
    assert!(child.wait().success(), "{}", child.transcript());
}

/// Made in one runtime, used in the next ones, and by several at once.
pub(super) async fn c17_a_handle_outlives_the_runtime_it_was_made_in(site: &Site) {
    let url = site.database.url().to_owned();
    let made = thread::spawn(move || runtime().block_on(Idem::connect(&url))).join().expect("no panic");
    let w = site.worker_of(made.expect("a database"));
    for round in 0..3 {
        let (w, id) = (w.clone(), format!("runtime-{round}"));
        thread::spawn(move || {
            let gate = Gate::new();
            gate.open();
            runtime().block_on(async { assert_eq!(executed(pending(&w, &id, &gate)).await, id) });
        })
        .join()
        .expect("no panic");
    }
    let at_once: Vec<_> = (0..4)
        .map(|n| {
            let (w, id) = (w.clone(), format!("at-once-{n}"));
            thread::spawn(move || {
                let gate = Gate::new();
                gate.open();
                runtime().block_on(async { executed(pending(&w, &id, &gate)).await });
            })
        })
        .collect();
    for thread in at_once {
        thread.join().expect("no panic");
    }
    assert_eq!(site.ledger.total(), 7);
}

/// Three tests at once, each with a database and a handle of its own.
pub(super) async fn c17_each_test_reaches_its_own_database(site: &Site) {
    let backend = site.backend();
    let tests: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(move || {
                let site = Site::on(backend);
                let gate = Gate::new();
                gate.open();
                runtime().block_on(async {
                    let w = site.worker().await;
                    assert_eq!(executed(pending(&w, "shared", &gate)).await, "shared");
                    assert_eq!(replayed(pending(&w, "shared", &gate)).await, "shared");
                });
                site.effects("shared")
            })
        })
        .collect();
    for test in tests {
        assert_eq!(test.join().expect("no panic"), 1);
    }
}

/// Who shuts down claims nothing more, and what runs is finished and recorded.
pub(super) async fn c17_a_shutdown_waits_for_what_runs(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(pending(&w, "running", &gate)).await }
    });
    gate.arrived().await;
    assert_eq!(w.idem.shutdown(Duration::from_millis(50)).await, ["c17:running"]);
    refused(ErrorKind::ShuttingDown, pending(&w, "new", &gate)).await;
    let claimed = w.row("c17:running").await.lease_until;
    w.row_such_that("c17:running", "renewed", |row| row.lease_until > claimed).await;
    let waiting = tokio::spawn({
        let w = w.clone();
        async move { w.idem.shutdown(Duration::from_secs(30)).await }
    });
    gate.open();
    assert_eq!(running.await.expect("no panic"), "running");
    assert!(waiting.await.expect("no panic").is_empty());
    assert_eq!(w.row("c17:running").await.status, Status::Completed);
    assert_eq!(site.effects("new"), 0);
}

#[idempotent(key = "c17-waiting:<id>", on_busy = "wait", wait_for = "60s", on_error = "release", idem = w.idem)]
async fn waiting(w: &Worker, id: &str, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    gate.pass().await;
    Err(Fault::own("down"))
}

/// A call that waits for a busy key when the shutdown comes does not begin when that key is free.
pub(super) async fn c17_a_call_that_waits_is_not_begun_after_a_shutdown(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let call = || {
        let (w, gate) = (w.clone(), gate.clone());
        tokio::spawn(async move { waiting(&w, "x", &gate).await })
    };
    let holder = call();
    gate.arrived().await;
    let waiter = call();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(w.idem.shutdown(Duration::from_millis(10)).await, ["c17-waiting:x"]);
    gate.open();
    assert_eq!(holder.await.expect("no panic").expect_err("its own").to_string(), "down");
    let error = waiter.await.expect("no panic").expect_err("too late").idem();
    assert_eq!(error.kind(), ErrorKind::ShuttingDown);
    assert_eq!(w.row("c17-waiting:x").await.status, Status::Released);
    assert_eq!(site.effects("x"), 1);
}

/// Whoever drops the last handle of the application while a job runs loses nothing.
#[idempotent(key = "c17-last:<id>", idem = idem)]
async fn last(idem: Idem, id: &str, gate: &Gate) -> Result<String, Error> {
    drop(idem);
    gate.pass().await;
    Ok(id.to_owned())
}

pub(super) async fn c17_a_job_outlives_the_last_handle(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let idem = site.worker().await.idem;
    let running = tokio::spawn({
        let gate = gate.clone();
        async move { executed(last(idem, "x", &gate)).await }
    });
    gate.arrived().await;
    gate.open();
    assert_eq!(running.await.expect("no panic"), "x");
    assert_eq!(w.row("c17-last:x").await.status, Status::Completed);
}
