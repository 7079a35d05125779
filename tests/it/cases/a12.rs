//! The late finisher after a takeover: a worker that stood still, and comes back when another one has its claim.

use std::{
    env,
    time::{Duration, Instant},
};

use idem_runtime::{Error, ErrorKind, Resolution, Resolved, current, idempotent, record::Status};
use idem_tests::{Backend, Child, child::Parent};
use tokio::time::sleep;

use super::{
    call::{Fault, executed, refused, replayed, took_over},
    gate::Gate,
    site::{Site, Worker, at_rest},
};

const JOB: &str = "IDEM_CASE_JOB";
const LEASE: Duration = Duration::from_secs(1);

/// Where a body runs, and so what it does.
#[derive(Clone, Debug)]
enum Stage {
    /// In a child process: as its parent says.
    Child,
    /// In the parent: up to the gate.
    Parent(Gate),
}

#[idempotent(key = "a12:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn late(w: &Worker, id: &str, stage: &Stage) -> Result<String, Fault> {
    w.effect(id);
    play(stage).await
}

#[idempotent(key = "a12-alert:<id>", stale_after = "1s", idem = w.idem)]
async fn late_alert(w: &Worker, id: &str, stage: &Stage) -> Result<String, Fault> {
    w.effect(id);
    play(stage).await
}

#[idempotent(key = "a12-sync:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
fn late_sync(w: &Worker, id: &str, stage: &Stage) -> Result<String, Fault> {
    w.effect(id);
    match stage {
        Stage::Child => obey(&Parent::attach().expect("a parent")),
        Stage::Parent(_) => Ok("B".to_owned()),
    }
}

/// An heir whose lease nobody but itself could move.
#[idempotent(
    key = "a12:<id>",
    stale_after = "30s",
    heartbeat = false,
    on_stale = "retry",
    allow_overlap(late),
    idem = w.idem
)]
async fn silent_heir(w: &Worker, id: &str, stage: &Stage) -> Result<String, Fault> {
    w.effect(id);
    play(stage).await
}

async fn play(stage: &Stage) -> Result<String, Fault> {
    let gate = match stage {
        Stage::Parent(gate) => gate,
        Stage::Child => {
            let parent = Parent::attach().expect("a parent");
            return match parent.hear_after("entered").as_str() {
                "await" => {
                    let _says_so = SaysSo(&parent);
                    parent.say("awaiting");
                    std::future::pending().await
                }
                word => obey_from(&parent, word.to_owned()),
            };
        }
    };
    gate.pass().await;
    Ok("B".to_owned())
}

/// Does what the parent says, without ever coming to an await.
fn obey(parent: &Parent) -> Result<String, Fault> {
    obey_from(parent, parent.hear_after("entered"))
}

fn obey_from(parent: &Parent, first: String) -> Result<String, Fault> {
    let mut word = first;
    loop {
        match word.as_str() {
            "lose" => {
                let patience = Instant::now() + Duration::from_secs(30);
                while !current().is_lost() && Instant::now() < patience {
                    std::thread::sleep(Duration::from_millis(5));
                }
                parent.say(&format!("lost {}", current().is_lost()));
            }
            "Ok" => return Ok("A".to_owned()),
            "Err" => return Err(Fault::own("down")),
            other => panic!("{other}"),
        }
        word = parent.hear();
    }
}

trait Converse {
    fn hear_after(&self, word: &str) -> String;
}

impl Converse for Parent {
    fn hear_after(&self, word: &str) -> String {
        self.say(word);
        self.hear()
    }
}

/// Tells the parent that a body was dropped.
struct SaysSo<'a>(&'a Parent);

impl Drop for SaysSo<'_> {
    fn drop(&mut self) {
        self.0.say("dropped");
    }
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn late_worker() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    let result = match env::var(JOB).expect("set by the parent").as_str() {
        "retry" => late(&w, "x", &Stage::Child).await,
        "alert" => late_alert(&w, "x", &Stage::Child).await,
        "sync" => late_sync(&w, "x", &Stage::Child),
        other => panic!("{other}"),
    };
    parent.say(&match result {
        Ok(value) => format!("ended {value}"),
        Err(Fault::Own(text)) => format!("ended {text}"),
        Err(Fault::Idem(error)) => format!("ended {:?}", error.kind()),
    });
}

/// A worker of its own process, in its body.
fn worker_in_body(site: &Site, job: &str) -> Child {
    let mut child = Child::spawn(site.child("cases::a12::late_worker").env(JOB, job));
    child.expect("entered");
    child
}

/// Stops a worker, but not in the middle of a statement, which would hold up whoever else writes.
async fn stop(site: &Site, child: &mut Child, key: &str) {
    loop {
        child.stop();
        let mut hand = site.connection().await;
        let free = if site.backend() == Backend::Sqlite {
            hand.execute("PRAGMA busy_timeout = 100").await;
            hand.try_execute("BEGIN IMMEDIATE; ROLLBACK").await
        } else {
            let lock = format!("SELECT 1 FROM idempotency_keys WHERE \"key\" = '{key}' FOR UPDATE NOWAIT");
            hand.try_execute(&lock).await
        };
        if free.is_ok() {
            return;
        }
        child.resume();
        sleep(Duration::from_millis(20)).await;
    }
}

fn open() -> Stage {
    let gate = Gate::new();
    gate.open();
    Stage::Parent(gate)
}

pub(super) async fn a12_a_late_finisher_after_its_heirs_end_changes_nothing(site: &Site) {
    let w = site.worker().await;
    let mut child = worker_in_body(site, "retry");
    stop(site, &mut child, "a12:x").await;
    sleep(2 * LEASE).await;
    assert_eq!(took_over(late(&w, "x", &open())).await, "B");
    let row = at_rest(w.row("a12:x").await);

    child.resume();
    child.say("Ok");
    assert_eq!(child.expect("ended"), "ClaimLost");
    assert_eq!(at_rest(w.row("a12:x").await), row);
    assert_eq!(replayed(late(&w, "x", &open())).await, "B");
    assert_eq!(site.effects("x"), 2);
}

pub(super) async fn a12_b_late_finisher_before_its_heirs_end_changes_nothing(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut child = worker_in_body(site, "retry");
    stop(site, &mut child, "a12:x").await;
    site.set("a12:x", "lease_until = 1").await;
    let heir = tokio::spawn({
        let (w, stage) = (w.clone(), Stage::Parent(gate.clone()));
        async move { took_over(late(&w, "x", &stage)).await }
    });
    gate.arrived().await;
    let claim = w.row("a12:x").await;

    child.resume();
    child.say("Ok");
    assert_eq!(child.expect("ended"), "ClaimLost");
    let row = w.row("a12:x").await;
    assert_eq!((row.status, row.owner, row.fence), (Status::Processing, claim.owner, claim.fence));
    assert_eq!(row.result, None);
    gate.open();
    assert_eq!(heir.await.expect("no panic"), "B");
    assert_eq!(replayed(late(&w, "x", &open())).await, "B");
}

pub(super) async fn a12_c_late_failure_is_its_callers_alone(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut child = worker_in_body(site, "retry");
    stop(site, &mut child, "a12:x").await;
    site.set("a12:x", "lease_until = 1").await;
    let heir = tokio::spawn({
        let (w, stage) = (w.clone(), Stage::Parent(gate.clone()));
        async move { took_over(late(&w, "x", &stage)).await }
    });
    gate.arrived().await;
    let claim = w.row("a12:x").await;

    child.resume();
    child.say("Err");
    assert_eq!(child.expect("ended"), "down", "its own error");
    let row = w.row("a12:x").await;
    assert_eq!((row.status, row.owner, row.fence), (Status::Processing, claim.owner, claim.fence));
    assert_eq!(row.error, None);
    gate.open();
    assert_eq!(heir.await.expect("no panic"), "B");
}

pub(super) async fn a12_c_late_failure_leaves_a_completion_alone(site: &Site) {
    let w = site.worker().await;
    let mut child = worker_in_body(site, "retry");
    stop(site, &mut child, "a12:x").await;
    site.set("a12:x", "lease_until = 1").await;
    assert_eq!(took_over(late(&w, "x", &open())).await, "B");
    let row = at_rest(w.row("a12:x").await);
    child.resume();
    child.say("Err");
    assert_eq!(child.expect("ended"), "down");
    assert_eq!(at_rest(w.row("a12:x").await), row);
}

pub(super) async fn a12_d_late_heartbeat_neither_prolongs_nor_revives(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut child = worker_in_body(site, "retry");
    stop(site, &mut child, "a12:x").await;
    site.set("a12:x", "lease_until = 1").await;
    let stage = Stage::Parent(gate.clone());
    let mut heir = Box::pin(took_over(silent_heir(&w, "x", &stage)));
    gate.stops(&mut heir).await;
    let row = at_rest(w.row("a12:x").await);

    child.resume();
    child.say("lose");
    assert_eq!(child.expect("lost"), "true", "the body can see it");
    sleep(LEASE).await;
    assert_eq!(at_rest(w.row("a12:x").await), row, "three heartbeats later");
    child.say("lose");
    assert_eq!(child.expect("lost"), "true", "for good");
    child.say("Ok");
    assert_eq!(child.expect("ended"), "ClaimLost");
    gate.open();
    assert_eq!(heir.await, "B");
}

pub(super) async fn a12_d_body_that_awaits_is_dropped_when_it_is_late(site: &Site) {
    let w = site.worker().await;
    let mut child = worker_in_body(site, "retry");
    child.say("await");
    child.expect("awaiting");
    stop(site, &mut child, "a12:x").await;
    site.set("a12:x", "lease_until = 1").await;
    assert_eq!(took_over(late(&w, "x", &open())).await, "B");
    let row = at_rest(w.row("a12:x").await);

    child.resume();
    child.expect("dropped");
    assert_eq!(child.expect("ended"), "ClaimLost");
    assert_eq!(at_rest(w.row("a12:x").await), row);
}

pub(super) async fn a12_a_late_synchronous_finisher_changes_nothing(site: &Site) {
    let w = site.worker().await;
    for (word, ended) in [("Ok", "ClaimLost"), ("Err", "down")] {
        let mut child = worker_in_body(site, "sync");
        stop(site, &mut child, "a12-sync:x").await;
        site.set("a12-sync:x", "lease_until = 1").await;
        assert_eq!(late_sync(&w, "x", &open()).expect("a takeover"), "B");
        let row = at_rest(w.row("a12-sync:x").await);
        child.resume();
        child.say("lose");
        assert_eq!(child.expect("lost"), "true");
        child.say(word);
        assert_eq!(child.expect("ended"), ended);
        assert_eq!(at_rest(w.row("a12-sync:x").await), row);
        w.idem.forget("a12-sync:x").force().await.expect("a look");
    }
}

pub(super) async fn a12_under_alert_a_late_completion_counts(site: &Site) {
    let w = site.worker().await;
    let mut child = worker_in_body(site, "alert");
    stop(site, &mut child, "a12-alert:x").await;
    sleep(2 * LEASE).await;
    refused(ErrorKind::NeedsReview, late_alert(&w, "x", &open())).await;
    child.resume();
    child.say("Ok");
    assert_eq!(child.expect("ended"), "A", "nobody took its claim");
    assert_eq!(replayed(late_alert(&w, "x", &open())).await, "A");
    assert_eq!(site.effects("x"), 1);
}

pub(super) async fn a12_under_alert_a_late_failure_stays_in_review(site: &Site) {
    let w = site.worker().await;
    let mut child = worker_in_body(site, "alert");
    stop(site, &mut child, "a12-alert:x").await;
    site.set("a12-alert:x", "lease_until = 1").await;
    refused(ErrorKind::NeedsReview, late_alert(&w, "x", &open())).await;
    child.resume();
    child.say("Err");
    assert_eq!(child.expect("ended"), "down");
    refused(ErrorKind::NeedsReview, late_alert(&w, "x", &open())).await;
    assert_eq!(w.row("a12-alert:x").await.status, Status::NeedsReview);
    assert_eq!(site.effects("x"), 1);
}

pub(super) async fn a12_under_alert_a_heartbeat_revives_a_claim_that_nobody_took(site: &Site) {
    let w = site.worker().await;
    let mut child = worker_in_body(site, "alert");
    stop(site, &mut child, "a12-alert:x").await;
    site.set("a12-alert:x", "lease_until = 1").await;
    child.resume();
    w.row_such_that("a12-alert:x", "alive again", |row| row.lease_until > Some(row.now)).await;
    refused(ErrorKind::InProgress, late_alert(&w, "x", &open())).await;
    child.say("Ok");
    assert_eq!(child.expect("ended"), "A");
}

pub(super) async fn a12_a_key_that_a_person_freed_is_completed_by_whoever_ends_first(site: &Site) {
    let w = site.worker().await;
    let review = async || {
        let mut child = worker_in_body(site, "alert");
        stop(site, &mut child, "a12-alert:x").await;
        site.set("a12-alert:x", "lease_until = 1").await;
        refused(ErrorKind::NeedsReview, late_alert(&w, "x", &open())).await;
        w.idem.resolve("a12-alert:x", Resolution::Retry).note("not seen").await.expect("a look");
        assert_eq!(w.row("a12-alert:x").await.status, Status::Released);
        child
    };
    let mut child = review().await;
    child.resume();
    child.say("Ok");
    assert_eq!(child.expect("ended"), "A", "nobody took it yet");
    assert_eq!(replayed(late_alert(&w, "x", &open())).await, "A");
    w.idem.forget("a12-alert:x").force().await.expect("a look");

    let mut child = review().await;
    assert_eq!(executed(late_alert(&w, "x", &open())).await, "B");
    child.resume();
    child.say("Ok");
    assert_eq!(child.expect("ended"), "ClaimLost");
    assert_eq!(replayed(late_alert(&w, "x", &open())).await, "B");
}

#[idempotent(key = "a12-spin:<id>", stale_after = "2s", on_stale = "retry", idem = w.idem)]
async fn spin(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.open();
    gate.pass().await;
    let end = Instant::now() + 3 * Duration::from_secs(2);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    tokio::task::yield_now().await;
    Ok(format!("{id} {}", current().is_lost()))
}

pub(super) async fn a12_a_body_that_hogs_its_executor_keeps_its_claim(site: &Site) {
    let (w, other, began) = (site.worker().await, site.worker().await, Gate::new());
    let spinning = ["one", "two"].map(|id| {
        let (w, began) = (w.clone(), began.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async { executed(spin(&w, id, &began)).await })
        })
    });
    began.arrived().await;
    began.arrived().await;
    while !spinning.iter().all(std::thread::JoinHandle::is_finished) {
        for id in ["one", "two"] {
            match spin(&other, id, &began).await {
                Ok(value) => assert_eq!(value, format!("{id} false"), "replayed"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::InProgress),
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
    for (id, thread) in ["one", "two"].into_iter().zip(spinning) {
        assert_eq!(thread.join().expect("no panic"), format!("{id} false"));
        assert_eq!(site.effects(id), 1);
    }
}

#[idempotent(key = "a12-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str, value: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(value.to_owned())
}

/// Nothing stands before the effect, so both run; the first record stays, and each caller has its own value.
pub(super) async fn a12_the_first_record_of_two_stays(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    let (late, early) = (Gate::new(), Gate::new());
    early.open();
    let mut first = Box::pin(executed(mail(&w, "x", "A", &late)));
    late.stops(&mut first).await;
    assert_eq!(executed(mail(&other, "x", "B", &early)).await, "B");
    let row = at_rest(w.row("a12-mail:x").await);
    late.open();
    assert_eq!(first.await, "A");
    assert_eq!(at_rest(w.row("a12-mail:x").await), row);
    assert_eq!(replayed(mail(&w, "x", "C", &late)).await, "B");
    assert_eq!(site.effects("x"), 2);
}

#[idempotent(key = "a12-freed:<id>", stale_after = "1s", idem = w.idem)]
async fn freed(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    if current().attempt() == 1 {
        current().lost().await;
    }
    gate.pass().await;
    Ok(format!("attempt {}", current().attempt()))
}

/// Whose key a person frees by force while it runs, it is told, and its end does not count.
pub(super) async fn a12_a_key_that_is_freed_by_force_is_lost_to_its_holder(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    let gate = Gate::new();
    let holder = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { refused(ErrorKind::ClaimLost, freed(&w, "x", &gate)).await }
    });
    let row = w.row_that_is("a12-freed:x", &Status::Processing).await;
    let refusal = other.idem.resolve("a12-freed:x", Resolution::Retry).note("stuck?").await.expect("a look");
    assert!(matches!(refusal, Resolved::Refused { .. }), "its holder is alive: {refusal:?}");
    let freeing = other.idem.resolve("a12-freed:x", Resolution::Retry).note("it must go").force();
    assert!(matches!(freeing.await.expect("a look"), Resolved::Changed { .. }));
    assert!(w.row("a12-freed:x").await.fence > row.fence, "its holder's writes are refused from now on");

    let open = Gate::new();
    open.open();
    assert_eq!(executed(freed(&other, "x", &open)).await, "attempt 2");
    gate.arrived().await;
    gate.open();
    holder.await.expect("no panic");
    assert_eq!(replayed(freed(&w, "x", &open)).await, "attempt 2");
}

/// Whose row is deleted while it runs, its end makes no new one.
pub(super) async fn a12_a_row_that_is_forgotten_is_lost_to_its_holder(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    let gate = Gate::new();
    let holder = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { refused(ErrorKind::ClaimLost, freed(&w, "y", &gate)).await }
    });
    w.row_that_is("a12-freed:y", &Status::Processing).await;
    other.idem.forget("a12-freed:y").note("test data").force().await.expect("a look");
    gate.arrived().await;
    gate.open();
    holder.await.expect("no panic");
    assert_eq!(w.find("a12-freed:y").await, None);
}

#[idempotent(key = "a12-record:<id>", on_error = "record", stale_after = "1s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn recorded(w: &Worker, id: &str, fails: bool, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    gate.pass().await;
    if fails { Err(Fault::own("never")) } else { Ok("B".to_owned()) }
}

/// A late verdict that it never will does not overrule the success of the heir, nor the other way round.
pub(super) async fn a12_a_late_verdict_changes_nothing(site: &Site) {
    let w = site.worker().await;
    for (id, late_fails) in [("fails", true), ("succeeds", false)] {
        let (gate, heir) = (Gate::new(), Gate::new());
        let mut first = Box::pin(recorded(&w, id, late_fails, &gate));
        gate.stops(&mut first).await;
        let key = format!("a12-record:{id}");
        site.end_lease(&w, &key).await;
        heir.open();
        let second = recorded(&w, id, !late_fails, &heir).await;
        assert_eq!(second.is_ok(), late_fails);
        let row = at_rest(w.row(&key).await);
        gate.open();
        match first.await.expect_err("late") {
            Fault::Own(text) => assert!(late_fails && text == "never"),
            Fault::Idem(error) => assert_eq!(error.kind(), ErrorKind::ClaimLost),
        }
        assert_eq!(at_rest(w.row(&key).await), row);
    }
}
