//! The rows of phases live and end with their job's.

use std::time::Duration;

use idem_runtime::{idempotent, phase, record::Status};

use crate::cases::{
    call::{Fault, executed, failed},
    gate::Gate,
    site::{Site, Worker},
};

#[idempotent(key = "lives:<id>", ttl = "1s", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn short(w: &Worker, id: &str, works: bool) -> Result<u32, Fault> {
    let charged: u32 = phase!("charge", async {
        w.effect(id);
        Ok(1)
    });
    phase!("mail", mode = "record_after", async {
        if works { Ok(()) } else { Err(Fault::own("not this time")) }
    });
    Ok(charged)
}

#[idempotent(key = "kept:<id>", on_stale = "retry", idem = w.idem)]
async fn kept(w: &Worker, id: &str, works: bool) -> Result<u32, Fault> {
    let charged: u32 = phase!("charge", async {
        w.effect(id);
        Ok(1)
    });
    if works { Ok(charged) } else { Err(Fault::own("not this time")) }
}

/// Keys that are like that of the job, but not below it.
const NEIGHBOURS: [&str; 3] = ["kept:10", "kept:1%2Fcharge", "kept:1.0"];

/// Waits until a row has expired.
async fn expired(w: &Worker, key: &str) {
    w.row_such_that(key, "expired", |row| row.expires_at.is_some_and(|end| end <= row.now)).await;
}

pub(crate) async fn a_job_past_its_ttl_begins_its_phases_afresh(site: &Site) {
    let w = site.worker().await;
    executed(short(&w, "1", true)).await;
    expired(&w, "lives:1").await;
    // Nobody purged it: its phases are there, and count no more, neither for the first execution nor for the next.
    failed(short(&w, "1", false)).await;
    assert_eq!(site.effects("1"), 2);
    executed(short(&w, "1", true)).await;
    assert_eq!(site.effects("1"), 2);
}

pub(crate) async fn a_purged_job_takes_its_phases_along(site: &Site) {
    let w = site.worker().await;
    executed(short(&w, "1", true)).await;
    for id in ["10", "1/charge", "1.0"] {
        executed(kept(&w, id, true)).await;
    }
    executed(kept(&w, "1", true)).await;
    assert_eq!(w.idem.purge().await.expect("a purge"), 0);
    expired(&w, "lives:1").await;
    assert_eq!(w.idem.purge().await.expect("a purge"), 1, "its phases are not counted");
    for key in ["lives:1", "lives:1/charge", "lives:1/mail"] {
        assert_eq!(w.find(key).await, None, "{key}");
    }
    for key in NEIGHBOURS.into_iter().chain(["kept:1"]) {
        assert_eq!(w.row(key).await.phases.len(), 1, "{key}");
    }
    executed(short(&w, "1", true)).await;
    assert_eq!(site.effects("1"), 3);
}

pub(crate) async fn a_forgotten_job_takes_its_phases_along(site: &Site) {
    let w = site.worker().await;
    for id in ["1", "10", "1/charge", "1.0"] {
        executed(kept(&w, id, true)).await;
    }
    w.idem.forget("kept:1").force().await.expect("an answer");
    for key in ["kept:1", "kept:1/charge"] {
        assert_eq!(w.find(key).await, None, "{key}");
    }
    for key in NEIGHBOURS {
        assert_eq!(w.row(key).await.phases.len(), 1, "{key}");
    }
    executed(kept(&w, "1", true)).await;
    assert_eq!(site.effects("1"), 2);
    let (before, after) = (w.row("kept:10/charge").await.fence, w.row("kept:1/charge").await.fence);
    assert!(before < after);
}

pub(crate) async fn a_released_job_is_kept_for_its_phases(site: &Site) {
    let w = site.worker_by(|builder| builder.keep_released_for(Duration::ZERO)).await;
    failed(kept(&w, "1", false)).await;
    assert_eq!(w.row("kept:1").await.status, Status::Released);
    assert_eq!(w.idem.purge().await.expect("a purge"), 0);
    executed(kept(&w, "1", true)).await;
    assert_eq!(site.effects("1"), 1);
}

#[idempotent(key = "withdrawn:<id>", on_stale = "retry", stale_after = "1s", heartbeat = false, idem = w.idem)]
async fn withdrawn(w: &Worker, id: &str, gate: Option<&Gate>) -> Result<u32, Fault> {
    let charged = charge(w, id).await?;
    if let Some(gate) = gate {
        gate.pass().await;
    }
    Err(Fault::own(&format!("charged {charged}")))
}

/// A phase that the job's own text does not show.
async fn charge(w: &Worker, id: &str) -> Result<u32, Fault> {
    Ok(phase!("charge", async {
        w.effect(id);
        Ok(1)
    }))
}

/// Fails before it comes to its phases.
#[idempotent(
    key = "withdrawn:<id>",
    on_stale = "retry",
    stale_after = "1s",
    heartbeat = false,
    allow_overlap(withdrawn),
    idem = w.idem
)]
async fn early(w: &Worker, id: &str) -> Result<u32, Fault> {
    w.effect("early");
    Err(Fault::own(id))
}

pub(crate) async fn a_withdrawn_claim_keeps_a_job_for_its_phases(site: &Site) {
    let w = site.worker_by(|builder| builder.keep_released_for(Duration::ZERO)).await;
    let gate = Gate::new();
    let mut call = Box::pin(withdrawn(&w, "1", Some(&gate)));
    gate.stops(&mut call).await;
    site.end_lease(&w, "withdrawn:1").await;
    // A job that shows no phase takes the claim over, and comes to none.
    failed(early(&w, "1")).await;
    assert_eq!(w.idem.purge().await.expect("a purge"), 0);
    failed(withdrawn(&w, "1", None)).await;
    assert_eq!(site.effects("1"), 1);
    drop(call);
}

pub(crate) async fn phases_that_a_row_left_behind_are_none(site: &Site) {
    if site.backend() == idem_tests::Backend::Memory {
        return;
    }
    let w = site.worker().await;
    executed(kept(&w, "1", true)).await;
    // Somebody deletes the job's row by hand.
    site.execute("DELETE FROM idempotency_keys WHERE \"key\" = 'kept:1'").await;
    failed(kept(&w, "1", false)).await;
    assert_eq!(site.effects("1"), 2);
    executed(kept(&w, "1", true)).await;
    assert_eq!(site.effects("1"), 2);
}
