//! Claims whose holder is gone, and what the stricter of two policies makes of them.

use std::sync::mpsc;

use idem_runtime::{ErrorKind, Idem, Outcome, Status, current, idempotent, with_outcome};

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, refused, row},
    rows::{self, HOUR},
    subject::Subject,
};

#[idempotent(key = "conf-retry:<id>", on_stale = "retry", on_error = "hold", idem = idem)]
async fn retries(id: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    if runs.enter() < 3 { body_fails("time-out") } else { Ok(current().attempt()) }
}

pub(super) async fn under_retry_a_held_key_runs_again(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    assert_eq!(failed(retries(1, &idem, &runs).await), "time-out");
    let first = row(&idem, "conf-retry:1").await;
    let (second, outcome) = with_outcome(retries(1, &s.idem().await, &runs)).await;
    assert_eq!((failed(second).as_str(), outcome), ("time-out", Some(Outcome::BodyFailed)));
    let second = row(&idem, "conf-retry:1").await;
    assert!(second.fence > first.fence && second.owner != first.owner);

    let (third, outcome) = with_outcome(retries(1, &idem, &runs)).await;
    assert_eq!((third.expect("done"), outcome), (3, Some(Outcome::TookOver)));
    let third = row(&idem, "conf-retry:1").await;
    assert_eq!((third.attempt, third.takeovers, third.error.as_deref()), (3, 2, Some("time-out")));
}

#[idempotent(key = "conf-alert:<id>", on_stale = "alert", idem = idem)]
async fn alerts(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    body_fails("time-out")
}

pub(super) async fn under_alert_a_held_key_waits_for_a_person_who_is_told_once(s: &Subject) {
    let (tell, told) = mpsc::channel();
    let hook = move |alerts: &[idem_runtime::Alert]| {
        for alert in alerts {
            tell.send((alert.key.clone(), alert.reason.clone())).expect("a listener");
        }
    };
    let idem = s.builder().on_alert(hook).connect().await.expect("an `Idem`");
    let runs = Runs::default();
    failed(alerts(1, &idem, &runs).await);
    for _ in 0..3 {
        let Err(Fault::Idem(error)) = alerts(1, &idem, &runs).await else { panic!("a person decides") };
        assert_eq!(error.kind(), ErrorKind::NeedsReview);
        assert!(error.is_retryable() && error.to_string().contains("time-out"), "{error}");
    }
    assert_eq!((runs.count(), row(&idem, "conf-alert:1").await.status), (1, Status::NeedsReview));

    let (key, reason) = told.recv_timeout(HOUR / 60).expect("an alert");
    assert_eq!(key, "conf-alert:1");
    assert!(reason.contains("time-out"), "{reason}");
    while row(&idem, "conf-alert:1").await.alerted_at.is_none() {
        tokio::task::yield_now().await;
    }
    drop(idem);
    assert_eq!(told.iter().count(), 0, "told once");
}

#[idempotent(key = "conf-limit:<id>", on_stale = "retry", on_error = "hold", max_takeovers = 2, idem = idem)]
async fn limited(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    body_fails("time-out")
}

pub(super) async fn after_its_takeovers_a_key_waits_for_a_person(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    for _ in 0..3 {
        failed(limited(1, &idem, &runs).await);
    }
    assert_eq!(refused(limited(1, &idem, &runs).await), ErrorKind::NeedsReview);
    let read = row(&idem, "conf-limit:1").await;
    assert_eq!((runs.count(), read.takeovers, read.status), (3, 2, Status::NeedsReview));
}

#[idempotent(key = "conf-strict:<id>", on_stale = "retry", on_error = "hold", idem = idem)]
async fn lenient(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    body_fails("lenient")
}

#[idempotent(key = "conf-strict:<id>", on_stale = "alert", idem = idem, allow_overlap(lenient))]
async fn strict(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    body_fails("strict")
}

pub(super) async fn a_deploy_that_becomes_lenient_frees_nothing(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(strict(1, &idem, &runs).await);
    assert_eq!(refused(lenient(1, &idem, &runs).await), ErrorKind::NeedsReview);
    assert_eq!(runs.count(), 1);
}

pub(super) async fn a_deploy_that_becomes_strict_holds_what_is_there(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(lenient(1, &idem, &runs).await);
    assert_eq!(refused(strict(1, &idem, &runs).await), ErrorKind::NeedsReview);
    assert_eq!(runs.count(), 1);
}

#[idempotent(key = "conf-dead:<id>", on_stale = "retry", idem = idem)]
async fn of_the_dead(id: u32, idem: &Idem, runs: &Runs) -> Result<(u32, i64), Fault> {
    runs.enter();
    Ok((current().attempt(), current().fence()))
}

pub(super) async fn a_dead_workers_claim_is_busy_for_its_lease_and_no_longer(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    let claim = idem_runtime::store::NewRow { template: None, ..rows::claim(1) };
    let dead = rows::written(s.insert("conf-dead:1", claim).await);
    let Err(Fault::Idem(error)) = of_the_dead(1, &idem, &runs).await else { panic!("somebody holds it") };
    assert_eq!(error.kind(), ErrorKind::InProgress);
    let left = error.retry_after().expect("a time");
    assert!(left <= rows::LEASE && left > rows::LEASE / 2, "{left:?}");

    s.raw.end_lease("conf-dead:1").await;
    let (taken, outcome) = with_outcome(of_the_dead(1, &idem, &runs)).await;
    let (attempt, fence) = taken.expect("taken over");
    assert_eq!((attempt, outcome, runs.count()), (2, Some(Outcome::TookOver), 1));
    assert!(fence > dead, "{fence} {dead}");
}

#[idempotent(key = "conf-ownerless:<id>", on_stale = "retry", idem = idem)]
async fn of_nobody(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    Ok(())
}

pub(super) async fn a_claim_without_owner_is_never_taken_over(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    s.raw.begin_by_hand("conf-ownerless:1").await;
    assert_eq!(refused(of_nobody(1, &idem, &runs).await), ErrorKind::InProgress);
    s.raw.age("conf-ownerless:1", std::time::Duration::from_mins(16)).await;
    assert_eq!(refused(of_nobody(1, &idem, &runs).await), ErrorKind::NeedsReview);
    assert_eq!((runs.count(), s.row("conf-ownerless:1").await.status), (0, Status::NeedsReview));
}

#[idempotent(key = "conf-zombie:<id>", on_stale = "retry", on_error = "hold", idem = idem)]
async fn zombie(
    id: u32,
    idem: &Idem,
    gate: Option<&Gate>,
    ending: Result<&str, &str>,
) -> Result<String, Fault> {
    if let Some(gate) = gate {
        gate.pass().await;
    }
    ending.map(ToOwned::to_owned).or_else(body_fails)
}

pub(super) async fn a_zombies_result_is_not_recorded(s: &Subject) {
    let (first, second) = (s.idem().await, s.idem().await);
    let gate = Gate::default();
    let (late, ()) = tokio::join!(zombie(1, &first, Some(&gate), Ok("A")), async {
        gate.entered().await;
        s.raw.end_lease("conf-zombie:1").await;
        assert_eq!(zombie(1, &second, None, Ok("B")).await.expect("taken over"), "B");
        gate.open();
    });
    assert_eq!(refused(late), ErrorKind::ClaimLost);
    assert_eq!(zombie(1, &first, None, Ok("C")).await.expect("replayed"), "B");
}

pub(super) async fn a_zombies_error_is_its_own_and_touches_nothing(s: &Subject) {
    let (first, second) = (s.idem().await, s.idem().await);
    let gate = Gate::default();
    let (late, ()) = tokio::join!(zombie(1, &first, Some(&gate), Err("late")), async {
        gate.entered().await;
        s.raw.end_lease("conf-zombie:1").await;
        zombie(1, &second, None, Ok("B")).await.expect("taken over");
        gate.open();
    });
    assert_eq!(failed(late), "late");
    let read = row(&first, "conf-zombie:1").await;
    assert_eq!((read.status, read.error), (Status::Completed, None));
}

#[idempotent(key = "conf-late:<id>", idem = idem)]
async fn late(id: u32, idem: &Idem, gate: &Gate) -> Result<u32, Fault> {
    gate.pass().await;
    Ok(7)
}

pub(super) async fn a_late_completion_counts_even_in_review(s: &Subject) {
    let (first, second) = (s.idem().await, s.idem().await);
    let gate = Gate::default();
    let (returned, ()) = tokio::join!(with_outcome(late(1, &first, &gate)), async {
        gate.entered().await;
        s.raw.end_lease("conf-late:1").await;
        assert_eq!(refused(late(1, &second, &gate).await), ErrorKind::NeedsReview);
        gate.open();
    });
    assert_eq!((returned.0.expect("recorded"), returned.1), (7, Some(Outcome::Executed)));
    assert_eq!(late(1, &second, &gate).await.expect("replayed"), 7);
}
