//! A phase that does not end well, by its own policy and not by its job's.

use std::{fmt::Debug, future::pending};

use crate::cases::{
    call::{Fault, executed, failed},
    gate::Gate,
    site::{Site, Worker},
};
use idem_runtime::{Error, current, idempotent, phase, record::Status};

/// How a body ends.
#[derive(Clone, Debug)]
enum End {
    Works,
    Fails,
    FailsMarked,
    Panics,
    Stops(Gate),
}

async fn play(w: &Worker, end: &End) -> Result<u32, Fault> {
    w.effect("phase");
    match end {
        End::Works => Ok(7),
        End::Fails => Err(Fault::own("the bank is silent")),
        End::FailsMarked => {
            current().effect_starts();
            Err(Fault::own("the bank is silent"))
        }
        End::Panics => panic!("on purpose"),
        End::Stops(gate) => {
            gate.pass().await;
            pending().await
        }
    }
}

#[idempotent(key = "fail-hold:<id>", on_stale = "retry", idem = w.idem)]
async fn holds(w: &Worker, id: &str, end: &End) -> Result<u32, Fault> {
    Ok(phase!("charge", async { play(w, end).await }))
}

#[idempotent(key = "fail-release:<id>", on_stale = "retry", idem = w.idem)]
async fn releases(w: &Worker, id: &str, end: &End) -> Result<u32, Fault> {
    Ok(phase!("charge", on_error = "release", async { play(w, end).await }))
}

#[idempotent(key = "fail-mark:<id>", on_stale = "retry", idem = w.idem)]
async fn marks(w: &Worker, id: &str, end: &End) -> Result<u32, Fault> {
    Ok(phase!("charge", on_error = "by_mark", async { play(w, end).await }))
}

#[idempotent(key = "fail-record:<id>", on_stale = "retry", idem = w.idem)]
async fn records(w: &Worker, id: &str, end: &End) -> Result<u32, Fault> {
    Ok(phase!("charge", on_error = "record", async { play(w, end).await }))
}

/// The key that needs review, as the call says it.
pub(super) async fn reviewed<T: Debug>(call: impl Future<Output = Result<T, Fault>>) -> (String, String) {
    match call.await {
        Err(Fault::Idem(Error::NeedsReview { key, reason, .. })) => (key.to_string(), reason),
        other => panic!("not for a person: {other:?}"),
    }
}

pub(crate) async fn an_error_that_holds_leaves_a_phase_to_a_person(site: &Site) {
    let w = site.worker().await;
    failed(holds(&w, "1", &End::Fails)).await;
    let (key, reason) = reviewed(holds(&w, "1", &End::Works)).await;
    assert_eq!(key, "fail-hold:1/charge");
    assert!(reason.contains("last error: the bank is silent"), "{reason}");
    assert_eq!(w.row("fail-hold:1/charge").await.status, Status::NeedsReview);
    // The job itself is free: the next delivery asks again.
    assert_eq!(w.row("fail-hold:1").await.status, Status::Released);
    assert_eq!(site.effects("phase"), 1);
}

pub(crate) async fn an_error_that_releases_lets_a_phase_run_again(site: &Site) {
    let w = site.worker().await;
    failed(releases(&w, "1", &End::Fails)).await;
    assert_eq!(executed(releases(&w, "1", &End::Works)).await, 7);
    assert_eq!((site.effects("phase"), w.row("fail-release:1/charge").await.attempt), (2, 2));
}

pub(crate) async fn an_error_before_the_mark_releases_and_after_it_holds(site: &Site) {
    let w = site.worker().await;
    failed(marks(&w, "1", &End::Fails)).await;
    failed(marks(&w, "1", &End::FailsMarked)).await;
    let (key, _) = reviewed(marks(&w, "1", &End::Works)).await;
    assert_eq!((key.as_str(), site.effects("phase")), ("fail-mark:1/charge", 2));
}

pub(crate) async fn an_error_that_is_recorded_is_final_for_the_phase(site: &Site) {
    let w = site.worker().await;
    failed(records(&w, "1", &End::Fails)).await;
    let Err(Fault::Idem(Error::PreviouslyFailed { key, message, .. })) = records(&w, "1", &End::Works).await
    else {
        panic!("it runs again")
    };
    assert_eq!((key.as_str(), message.as_str()), ("fail-record:1/charge", "the bank is silent"));
    assert_eq!((site.effects("phase"), w.row("fail-record:1/charge").await.expires_at), (1, None));
}

pub(crate) async fn a_panic_and_a_drop_leave_a_phase_as_an_error_that_holds(site: &Site) {
    let w = site.worker().await;
    let panicked = tokio::spawn({
        let w = w.clone();
        async move { holds(&w, "1", &End::Panics).await }
    });
    assert!(panicked.await.is_err_and(|error| error.is_panic()));
    let gate = Gate::new();
    let stops = End::Stops(gate.clone());
    let mut dropped = Box::pin(holds(&w, "2", &stops));
    gate.stops(&mut dropped).await;
    drop(dropped);
    for id in ["1", "2"] {
        let key = format!("fail-hold:{id}");
        w.row_such_that(&key, "over", |row| {
            row.status != Status::Processing || row.lease_until.is_some_and(|end| end <= row.now)
        })
        .await;
        w.row_such_that(&format!("{key}/charge"), "over", |row| {
            row.lease_until.is_some_and(|end| end <= row.now)
        })
        .await;
        let (named, _) = reviewed(holds(&w, id, &End::Works)).await;
        assert_eq!(named, format!("{key}/charge"));
    }
    assert_eq!(site.effects("phase"), 2);
}
