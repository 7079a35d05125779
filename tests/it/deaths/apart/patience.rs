//! Where the time itself is the subject: leases that end by themselves, and takeovers that come to an end.

use std::{env, time::Duration};

use idem_runtime::{Error, ErrorKind, current, idempotent, record::Status, with_outcome};
use idem_tests::{Child, Proxy, child::Parent};
use tokio::time::sleep;

use crate::{
    cases::{
        call::{refused, replayed, took_over},
        site::{Site, URL, Worker},
    },
    deaths::{
        jobs::{Call, Ends, Job},
        stop::{STOP, Stop, watch},
        worker::stopped_at,
    },
};

/// How long the leases here are, and a moment more.
const OVER: Duration = Duration::from_millis(1_100);

const JOB: &str = "IDEM_DEATHS_JOB";

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
        let w = Worker::of_parent().await;
        beats(&w, "x").await.expect("never");
    }
}

/// The reply to its heartbeat was lost, and then it died: what the row says holds.
pub(super) async fn a_death_after_a_heartbeat_that_was_not_heard_of_waits_for_the_new_end(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let mut child = Child::spawn(site.child("deaths::apart::patience::stays_in_its_body").env(URL, url));
    child.expect("entered");
    proxy.swallow_replies();
    let w = site.worker().await;
    let claimed = w.row("deaths-beats:x").await.lease_until;
    let row = w.row_such_that("deaths-beats:x", "renewed", |row| row.lease_until > claimed).await;
    child.kill();
    if row.lease_until > Some(row.now) {
        refused(ErrorKind::InProgress, beats(&w, "x")).await;
    }
    w.row_such_that("deaths-beats:x", "stale", |row| row.lease_until <= Some(row.now)).await;
    refused(ErrorKind::NeedsReview, beats(&w, "x")).await;
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
