//! What a phase can know of itself, and what others can know of it.

use std::time::Duration;

use idem_runtime::{ErrorKind, current, idempotent, phase, record::Status};
use idem_tests::Capture;

use crate::cases::{
    call::{Fault, executed, failed, refused},
    gate::Gate,
    site::{Site, Worker},
};

/// What `current()` says.
type Seen = (String, String, i64, u32, bool);

fn seen() -> Seen {
    let now = current();
    (now.key().to_string(), now.derived_key("bank"), now.fence(), now.attempt(), now.deadline().is_some())
}

#[idempotent(key = "inside:<id>", on_stale = "retry", idem = w.idem)]
async fn told(w: &Worker, id: &str, fails: bool) -> Result<[Seen; 4], Fault> {
    let whole = seen();
    let claimed = phase!("claimed", on_error = "release", async {
        w.effect("claimed");
        if fails { Err(Fault::own("at first")) } else { Ok(seen()) }
    });
    let unclaimed = phase!("unclaimed", mode = "record_after", async { Ok(seen()) });
    Ok([whole, claimed, unclaimed, seen()])
}

pub(crate) async fn a_phase_knows_its_key_and_the_keys_that_come_of_it(site: &Site) {
    let w = site.worker().await;
    failed(told(&w, "a:b", true)).await;
    let [whole, claimed, unclaimed, after] = executed(told(&w, "a:b", false)).await;
    let fence = whole.2;
    let right =
        |key: &str, derived: &str, attempt| (key.to_owned(), derived.to_owned(), fence, attempt, true);
    assert_eq!(whole, right("inside:a%3Ab", "ba91554eb06f20f84aa3a65df5a9ed87", 2));
    assert_eq!(after, whole);
    assert_eq!(claimed, right("inside:a%3Ab/claimed", "749615e9c28d0bd86336efc782c35a54", 2));
    assert_eq!(unclaimed, right("inside:a%3Ab/unclaimed", "1e990a9328f91ab6841b4bdc58359ad1", 1));
    let row = w.row("inside:a%3Ab/claimed").await;
    let job = w.row("inside:a%3Ab").await;
    assert_eq!((row.fence, row.owner), (job.fence, job.owner));
}

pub(crate) async fn a_look_at_a_job_shows_its_phases(site: &Site) {
    let w = site.worker().await;
    failed(told(&w, "1", true)).await;
    let row = w.row("inside:1").await;
    let [phase] = &row.phases[..] else { panic!("one phase: {row:#?}") };
    assert_eq!((phase.key.as_str(), &phase.status), ("inside:1/claimed", &Status::Released));
    assert_eq!((phase.phase_name(), phase.attempt), (Some("claimed"), 1));
    assert_eq!(phase.error.as_deref(), Some("at first"));
    assert!(phase.completed_at.is_none() && phase.created_at >= row.created_at);
    executed(told(&w, "1", false)).await;
    executed(told(&w, "10", false)).await;
    let row = w.row("inside:1").await;
    let phases: Vec<_> = row.phases.iter().map(|phase| (phase.phase_name(), &phase.status)).collect();
    assert_eq!(phases, [(Some("claimed"), &Status::Completed), (Some("unclaimed"), &Status::Completed)]);
    assert!(row.phases.iter().all(|phase| phase.completed_at.is_some()));
    let label = |name: &str| format!("{}/{name}", row.job.as_deref().expect("a label"));
    assert_eq!(row.phases[0].job.as_deref(), Some(&*label("claimed")));
    assert_eq!(row.phases[1].template.as_deref(), Some("inside:<>/unclaimed"));
}

#[idempotent(key = "lease:<id>", stale_after = "30s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn long(w: &Worker, id: &str, gates: &[Gate; 3]) -> Result<(), Fault> {
    gates[0].pass().await;
    phase!("claimed", async { Ok(()) });
    gates[1].pass().await;
    phase!("unclaimed", mode = "record_after", async { Ok(()) });
    gates[2].pass().await;
    Ok(())
}

pub(crate) async fn a_finished_phase_renews_the_lease_of_its_job(site: &Site) {
    let w = site.worker().await;
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    let mut ends = Vec::new();
    let job = tokio::spawn({
        let (w, gates) = (w.clone(), gates.clone());
        async move { executed(long(&w, "1", &gates)).await }
    });
    for gate in &gates {
        gate.arrived().await;
        ends.push(w.row("lease:1").await.lease_until.expect("a lease"));
        // SQLite's clock counts in milliseconds.
        tokio::time::sleep(Duration::from_millis(5)).await;
        gate.open();
    }
    job.await.expect("a job that ends");
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
}

#[idempotent(key = "events:<id>", name = "shop.order", on_stale = "retry", idem = w.idem)]
async fn twice(w: &Worker, id: &str) -> Result<(), Fault> {
    for _ in 0..2 {
        phase!("round", async { Ok(()) });
    }
    Ok(())
}

pub(crate) async fn each_ending_of_a_phase_is_one_event_under_its_jobs_name_and_its_own(site: &Site) {
    let w = site.worker().await;
    let log = Capture::here();
    failed(twice(&w, "1")).await;
    failed(twice(&w, "1")).await;
    let events = log.events();
    let ours: Vec<_> = events
        .iter()
        .filter(|event| event.target.starts_with("idem_runtime"))
        .map(|event| (event.message.as_str(), event.fields.get("job").map_or("", String::as_str)))
        .collect();
    let right = [
        ("done", "shop.order/round"),
        ("refused", "shop.order/round"),
        ("done", "shop.order"),
        ("already done, skipped", "shop.order/round"),
        ("refused", "shop.order/round"),
        ("done", "shop.order"),
    ];
    assert_eq!(ours, right, "{events:?}");
}

#[idempotent(key = "closing:<id>", idem = w.idem)]
async fn closing(w: &Worker, id: &str, gate: &Gate) -> Result<(), Fault> {
    gate.pass().await;
    phase!("late", async {
        w.effect("late");
        Ok(())
    });
    Ok(())
}

pub(crate) async fn a_shutdown_waits_for_the_phases_of_a_running_job(site: &Site) {
    let (w, gate) = (site.worker_by(|builder| builder).await, Gate::new());
    let job = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(closing(&w, "1", &gate)).await }
    });
    gate.arrived().await;
    assert_eq!(w.idem.shutdown(Duration::ZERO).await, ["closing:1"]);
    refused(ErrorKind::ShuttingDown, closing(&w, "2", &gate)).await;
    gate.open();
    job.await.expect("a job that ends");
    assert!(w.idem.shutdown(Duration::from_secs(30)).await.is_empty());
    assert_eq!(site.effects("late"), 1);
}
