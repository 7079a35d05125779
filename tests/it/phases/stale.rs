//! A phase whose worker died: by its own policy, under its own name.

use idem_runtime::{Error, Probe, Resolution, Resolved, current, idempotent, phase, record::Status};

use super::failure::reviewed;
use crate::cases::{
    call::{Fault, executed, took_over},
    gate::Gate,
    site::{Site, Worker},
};

/// Where a worker stands still, and what a probe answers.
#[derive(Clone, Debug)]
struct Plan {
    stops: Option<(&'static str, Gate)>,
    probe: Probe<u32>,
}

impl Plan {
    fn goes_on() -> Self {
        Self { stops: None, probe: Probe::Unknown }
    }

    fn stops_in(place: &'static str) -> (Self, Gate) {
        let gate = Gate::new();
        (Self { stops: Some((place, gate.clone())), ..Self::goes_on() }, gate)
    }

    async fn at(&self, place: &str) {
        if let Some((_, gate)) = self.stops.as_ref().filter(|(at, _)| *at == place) {
            gate.pass().await;
        }
    }
}

#[idempotent(key = "stale:<id>", stale_after = "1s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn order(w: &Worker, id: &str, plan: &Plan) -> Result<u32, Fault> {
    let reserved = phase!("reserve", on_stale = "retry", async {
        w.effect("reserve");
        plan.at("reserve").await;
        Ok(1)
    });
    let charged = phase!("charge", async {
        w.effect("charge");
        plan.at("charge").await;
        Ok(40)
    });
    plan.at("between").await;
    Ok(reserved + charged + 1)
}

#[idempotent(key = "stale-asked:<id>", stale_after = "1s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn asked(w: &Worker, id: &str, plan: &Plan) -> Result<u32, Fault> {
    let charged = phase!(
        "charge",
        on_stale = probe(async || {
            w.effect(&format!("asked by {}", current().key()));
            plan.probe
        }),
        async {
            w.effect("charge");
            plan.at("charge").await;
            Ok(42)
        }
    );
    Ok(charged)
}

#[idempotent(key = "stale-alert:<id>", stale_after = "1s", heartbeat = false, idem = w.idem)]
async fn alerting(w: &Worker, id: &str, plan: &Plan) -> Result<u32, Fault> {
    phase!("reserve", mode = "record_after", async { Ok(()) });
    plan.at("between").await;
    phase!("charge", async {
        w.effect("charge");
        plan.at("charge").await;
        Ok(())
    });
    Ok(7)
}

/// A worker that stands still in this place until its leases are over.
async fn dies<F: Future + Unpin>(site: &Site, w: &Worker, gate: &Gate, call: &mut F, keys: &[&str]) {
    gate.stops(call).await;
    for key in keys {
        site.end_lease(w, key).await;
    }
}

pub(crate) async fn a_phase_whose_worker_died_needs_review_by_its_own_name(site: &Site) {
    let w = site.worker().await;
    let (plan, gate) = Plan::stops_in("charge");
    let mut call = Box::pin(order(&w, "1", &plan));
    // The lease of the phase runs on: who holds the job knows that nobody is in there.
    dies(site, &w, &gate, &mut call, &["stale:1"]).await;
    let (key, reason) = reviewed(order(&w, "1", &Plan::goes_on())).await;
    assert_eq!(key, "stale:1/charge");
    assert!(reason.contains("attempt 1 by "), "{reason}");
    let row = w.row("stale:1/charge").await;
    assert_eq!(row.status, Status::NeedsReview);
    assert_eq!((site.effects("reserve"), site.effects("charge")), (1, 1));
}

pub(crate) async fn a_person_says_that_a_phase_happened_and_the_job_goes_on_behind_it(site: &Site) {
    let w = site.worker().await;
    let (plan, gate) = Plan::stops_in("charge");
    let mut call = Box::pin(order(&w, "1", &plan));
    dies(site, &w, &gate, &mut call, &["stale:1", "stale:1/charge"]).await;
    reviewed(order(&w, "1", &Plan::goes_on())).await;
    let resolved =
        w.idem.resolve("stale:1/charge", Resolution::Completed(Some(40.into()))).note("in the books");
    assert!(matches!(resolved.await, Ok(Resolved::Changed { .. })));
    assert_eq!(executed(order(&w, "1", &Plan::goes_on())).await, 42);
    assert_eq!((site.effects("reserve"), site.effects("charge")), (1, 1));
}

pub(crate) async fn a_person_says_that_a_phase_did_not_happen_and_it_runs_again(site: &Site) {
    let w = site.worker().await;
    let (plan, gate) = Plan::stops_in("charge");
    let mut call = Box::pin(order(&w, "1", &plan));
    dies(site, &w, &gate, &mut call, &["stale:1", "stale:1/charge"]).await;
    reviewed(order(&w, "1", &Plan::goes_on())).await;
    let resolved = w.idem.resolve("stale:1/charge", Resolution::Retry).await;
    assert!(matches!(resolved, Ok(Resolved::Changed { reenqueue: true, .. })), "{resolved:?}");
    assert_eq!(w.row("stale:1/charge").await.expires_at, None, "kept for as long as its job");
    assert_eq!(executed(order(&w, "1", &Plan::goes_on())).await, 42);
    assert_eq!((site.effects("reserve"), site.effects("charge")), (1, 2));
}

pub(crate) async fn the_review_of_a_job_names_the_phase_that_it_was_in(site: &Site) {
    let w = site.worker().await;
    for (place, says) in
        [("charge", "in its phase `charge` (processing)"), ("between", "after its phase `reserve`")]
    {
        let (plan, gate) = Plan::stops_in(place);
        let key = format!("stale-alert:{place}");
        let mut call = Box::pin(alerting(&w, place, &plan));
        dies(site, &w, &gate, &mut call, &[&key]).await;
        for _ in 0..2 {
            let (named, reason) = reviewed(alerting(&w, place, &Plan::goes_on())).await;
            assert_eq!(named, key);
            assert!(reason.contains(says), "{reason}");
        }
        let lines = w.idem.audit(&key).await.expect("lines");
        assert!(lines.last().is_some_and(|line| line.audit.note.contains(says)), "{lines:#?}");
        drop(call);
    }
}

pub(crate) async fn a_probe_is_asked_about_the_phase_whose_worker_died(site: &Site) {
    let w = site.worker().await;
    let answers = [Probe::Happened(40), Probe::DidNotHappen, Probe::Unknown];
    for (id, answer) in ["1", "2", "3"].into_iter().zip(answers) {
        let (plan, gate) = Plan::stops_in("charge");
        let key = format!("stale-asked:{id}");
        let mut call = Box::pin(asked(&w, id, &plan));
        dies(site, &w, &gate, &mut call, &[&key]).await;
        let plan = Plan { probe: answer, ..Plan::goes_on() };
        let before = site.effects("charge");
        let again = took_over_or_review(asked(&w, id, &plan)).await;
        let right = match answer {
            Probe::Happened(value) => (Some(value), 0),
            Probe::DidNotHappen => (Some(42), 1),
            Probe::Unknown => (None, 0),
        };
        assert_eq!((again, site.effects("charge") - before), right, "{answer:?}");
        assert_eq!(site.effects(&format!("asked by {key}/charge")), 1);
        drop(call);
    }
}

async fn took_over_or_review(call: impl Future<Output = Result<u32, Fault>>) -> Option<u32> {
    match call.await {
        Ok(value) => Some(value),
        Err(Fault::Idem(Error::NeedsReview { .. })) => None,
        Err(other) => panic!("{other:?}"),
    }
}

pub(crate) async fn a_phase_that_is_run_again_has_no_claim_to_go_stale(site: &Site) {
    let w = site.worker().await;
    let (plan, gate) = Plan::stops_in("reserve");
    let mut call = Box::pin(order(&w, "1", &plan));
    dies(site, &w, &gate, &mut call, &["stale:1"]).await;
    assert_eq!(w.find("stale:1/reserve").await, None);
    assert_eq!(took_over(order(&w, "1", &Plan::goes_on())).await, 42);
    assert_eq!((site.effects("reserve"), site.effects("charge")), (2, 1));
    // A takeover's line in the audit says where the other one stopped.
    let (plan, gate) = Plan::stops_in("between");
    let mut call = Box::pin(order(&w, "2", &plan));
    dies(site, &w, &gate, &mut call, &["stale:2"]).await;
    assert_eq!(took_over(order(&w, "2", &Plan::goes_on())).await, 42);
    let lines = w.idem.audit("stale:2").await.expect("lines");
    let [line] = &lines[..] else { panic!("one takeover: {lines:#?}") };
    assert!(line.audit.note.contains("; after its phase `"), "{line:#?}");
}
