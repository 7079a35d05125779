//! Where the time itself is the subject: leases that end by themselves, and takeovers that come to an end.

use std::{env, time::Duration};

use idem_runtime::{Error, ErrorKind, current, idempotent, record::Status, with_outcome};
use idem_tests::{Child, Proxy, child::Parent};
use tokio::time::{sleep, timeout};

use crate::{
    cases::{
        call::{refused, replayed, took_over},
        site::{Site, URL, Worker},
    },
    deaths::{
        jobs::{Call, Ends, Job},
        stop::{STOP, Stop, here, watch},
        worker::stopped_at,
    },
};

/// How long the leases here are, and a moment more.
const OVER: Duration = Duration::from_millis(1_100);

const JOB: &str = "IDEM_DEATHS_JOB";
const ID: &str = "IDEM_DEATHS_ID";

#[idempotent(key = "deaths-brief:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn brief(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(format!("attempt {}", current().attempt()))
}

#[idempotent(key = "deaths-brief-alert:<id>", stale_after = "1s", idem = w.idem)]
async fn brief_alert(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(format!("attempt {}", current().attempt()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn delivers_briefly() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    watch();
    let (result, _) = match env::var(JOB).expect("set by the parent").as_str() {
        "alert" => with_outcome(brief_alert(&w, "x")).await,
        _ => with_outcome(brief(&w, "x")).await,
    };
    parent.say(&match result {
        Ok(value) => format!("ended {value}"),
        Err(error) => format!("ended {:?}", error.kind()),
    });
}

/// A worker whose claim is written, and that stands still until its lease is over.
async fn slow(site: &Site, job: &str) -> Child {
    let mut command = site.child("deaths::apart::patience::delivers_briefly");
    let mut child = Child::spawn(command.env(JOB, job).env(STOP, "ClaimWritten"));
    child.expect("at");
    child.stop();
    sleep(OVER).await;
    child
}

fn goes_on(child: &mut Child) -> String {
    child.resume();
    child.say("go on");
    child.expect("ended")
}

pub(super) async fn a_claim_that_was_heard_of_too_late_is_not_entered(site: &Site) {
    let mut child = slow(site, "retry").await;
    let w = site.worker().await;
    assert_eq!(took_over(brief(&w, "x")).await, "attempt 2");
    assert_eq!(goes_on(&mut child), "attempt 2", "its heir's value");
    assert_eq!((site.effects("x"), w.row("deaths-brief:x").await.attempt), (1, 2));
}

pub(super) async fn a_claim_that_was_heard_of_too_late_is_made_anew(site: &Site) {
    for job in ["retry", "alert"] {
        let mut child = slow(site, job).await;
        assert_eq!(goes_on(&mut child), "attempt 1", "the one under which nothing ran does not count");
    }
    let w = site.worker().await;
    assert_eq!(replayed(brief(&w, "x")).await, "attempt 1");
    assert_eq!(replayed(brief_alert(&w, "x")).await, "attempt 1");
    assert_eq!(site.effects("x"), 2);
}

pub(super) async fn a_claim_that_was_heard_of_too_late_frees_no_key_that_needs_review(site: &Site) {
    let mut child = slow(site, "alert").await;
    let w = site.worker().await;
    refused(ErrorKind::NeedsReview, brief_alert(&w, "x")).await;
    assert_eq!(goes_on(&mut child), "NeedsReview");
    refused(ErrorKind::NeedsReview, brief_alert(&w, "x")).await;
    let status = w.row("deaths-brief-alert:x").await.status;
    assert_eq!((status, site.effects("x")), (Status::NeedsReview, 0));
}

#[idempotent(key = "deaths-beats:<id>", stale_after = "1s", idem = w.idem)]
async fn beats(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    if let Some(parent) = Parent::attach() {
        parent.say("entered");
        std::future::pending::<()>().await;
    }
    Ok(id.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn stays_in_its_body() {
    if Parent::attach().is_some() {
        // Nothing but heartbeats is to be heard of.
        let w = Worker::of_parent_by(|builder, _| builder.watcher(false)).await;
        beats(&w, &env::var(ID).expect("set by the parent")).await.expect("never");
    }
}

/// A worker dies when the reply to its heartbeat is lost, one of them. Whether the row was renewed.
async fn dies_unheard(site: &Site, w: &Worker, spared: usize) -> bool {
    let id = format!("spared-{spared}");
    let key = format!("deaths-beats:{id}");
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let mut command = site.child("deaths::apart::patience::stays_in_its_body");
    let mut child = Child::spawn(command.env(URL, url).env(ID, &id));
    child.expect("entered");
    let claimed = w.row(&key).await;
    proxy.swallow_replies_but(spared);
    proxy.reply_swallowed().await;
    child.kill();
    let row = w.row(&key).await;
    if row.lease_until > Some(row.now + 100_000) {
        refused(ErrorKind::InProgress, beats(w, &id)).await;
    }
    site.set(&key, "lease_until = 1").await;
    refused(ErrorKind::NeedsReview, beats(w, &id)).await;
    assert_eq!(site.effects(&id), 1);
    row.lease_until > claimed.lease_until
}

/// The reply to its heartbeat was lost, and then it died: what the row says holds.
pub(super) async fn a_death_after_a_heartbeat_that_was_not_heard_of_waits_for_the_new_end(site: &Site) {
    let (w, mut renewed) = (site.worker().await, false);
    for spared in 0..4 {
        renewed |= dies_unheard(site, &w, spared).await;
    }
    assert!(renewed, "one of them was renewed");
}

#[idempotent(key = "deaths-waits:<id>", on_stale = "retry", on_busy = "wait", wait_for = "60s", idem = w.idem)]
async fn waits(w: &Worker, id: &str, name: &str) -> Result<String, Error> {
    w.effect(id);
    here(Stop::AfterEffect);
    Ok(name.to_owned())
}

#[idempotent(key = "deaths-waits-alert:<id>", on_busy = "wait", wait_for = "60s", idem = w.idem)]
async fn waits_alert(w: &Worker, id: &str, name: &str) -> Result<String, Error> {
    w.effect(id);
    here(Stop::AfterEffect);
    Ok(name.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn holds_or_waits() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    parent.say("calls");
    let value = match env::var(JOB).expect("set by the parent").as_str() {
        "alert" => waits_alert(&w, "x", "itself").await,
        _ => waits(&w, "x", "itself").await,
    };
    parent.say(&format!("ended {value:?}"));
}

/// A worker in its body, or, where another one is, one that waits for it.
fn holder_or_waiter(site: &Site, job: &str) -> Child {
    let mut command = site.child("deaths::apart::patience::holds_or_waits");
    let mut child = Child::spawn(command.env(JOB, job).env(STOP, "AfterEffect"));
    child.expect("calls");
    child
}

/// Whoever waits for a worker that dies has its key when the lease ends, or is told that a person has it.
pub(super) async fn a_call_that_waits_for_a_worker_that_dies_does_not_wait_for_ever(site: &Site) {
    let w = site.worker().await;
    for job in ["retry", "alert"] {
        let mut holder = holder_or_waiter(site, job);
        holder.expect("at");
        let waiting = tokio::spawn({
            let w = w.clone();
            async move {
                match job {
                    "alert" => {
                        refused(ErrorKind::NeedsReview, waits_alert(&w, "x", "heir")).await.to_string()
                    }
                    _ => took_over(waits(&w, "x", "heir")).await,
                }
            }
        });
        holder.kill();
        sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished(), "nobody knows that it is dead");
        let key = if job == "alert" { "deaths-waits-alert:x" } else { "deaths-waits:x" };
        site.set(key, "lease_until = 1").await;
        let answer = timeout(Duration::from_secs(30), waiting).await.expect("in time").expect("no panic");
        assert!(job == "alert" || answer == "heir", "{answer}");
    }
    assert_eq!(site.effects("x"), 3);
}

/// Whoever dies while it waits leaves nothing behind.
pub(super) async fn a_death_of_a_call_that_waits_leaves_nothing(site: &Site) {
    let w = site.worker().await;
    let mut holder = holder_or_waiter(site, "retry");
    holder.expect("at");
    let row = w.row("deaths-waits:x").await;
    for _ in 0..3 {
        let mut waiter = holder_or_waiter(site, "retry");
        sleep(Duration::from_millis(50)).await;
        waiter.kill();
    }
    let now = w.row("deaths-waits:x").await;
    assert_eq!((now.owner, now.fence, now.attempt), (row.owner, row.fence, 1));
    holder.say("go on");
    assert_eq!(holder.expect("ended"), "Ok(\"itself\")");
    assert_eq!(replayed(waits(&w, "x", "heir")).await, "itself");
    assert_eq!(site.effects("x"), 1);
}

pub(super) async fn after_six_deaths_a_key_waits_for_a_person(site: &Site) {
    let (job, w) = (Job::Retry, site.worker().await);
    let key = job.key("x");
    for attempt in 1..=6 {
        stopped_at(site, job, Ends::Well, Stop::AfterEffect, "x", "itself").kill();
        assert_eq!(w.row(&key).await.attempt, attempt);
        site.set(&key, "lease_until = 1").await;
    }
    let (backend, url) = (site.backend(), site.database.url());
    let call = Call { w: &w, backend, url, id: "x", ends: Ends::Well, name: "heir" };
    for _ in 0..2 {
        let (result, _) = job.call(call).await;
        assert_eq!(result.expect_err("for a person").idem().kind(), ErrorKind::NeedsReview);
    }
    let row = w.row(&key).await;
    assert_eq!((row.status, row.attempt, row.takeovers), (Status::NeedsReview, 6, 5));
    assert_eq!(site.effects("x"), 6);
}
