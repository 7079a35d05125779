//! A worker that stood still until its job was taken over: it completes no phase, and enters none.

use idem_runtime::{Error, Resolution, Resolved, idempotent, phase, record::Status};

use super::failure::reviewed;
use crate::cases::{
    call::{Fault, failed},
    gate::Gate,
    site::{Site, Worker, at_rest},
};

/// In which phase a worker stands still, and what it calls itself.
#[derive(Clone, Debug)]
struct Stage {
    name: &'static str,
    stops_in: &'static str,
    gate: Gate,
}

impl Stage {
    fn new(name: &'static str, stops_in: &'static str) -> Self {
        Self { name, stops_in, gate: Gate::new() }
    }

    async fn play(&self, w: &Worker, place: &str) -> Result<String, Fault> {
        w.effect(place);
        self.at(place).await;
        Ok(self.name.to_owned())
    }

    async fn at(&self, place: &str) {
        if self.stops_in == place {
            self.gate.pass().await;
        }
    }
}

// Neither is dropped when its lease is lost: under `alert` the body goes on.
#[idempotent(key = "zombie:<id>", stale_after = "1s", heartbeat = false, idem = w.idem)]
async fn zombie(w: &Worker, id: &str, stage: &Stage) -> Result<Vec<String>, Fault> {
    phases(w, stage).await
}

#[idempotent(
    key = "zombie:<id>",
    stale_after = "30s",
    heartbeat = false,
    on_stale = "retry",
    allow_overlap(zombie),
    idem = w.idem
)]
async fn heir(w: &Worker, id: &str, stage: &Stage) -> Result<Vec<String>, Fault> {
    phases(w, stage).await
}

async fn phases(w: &Worker, stage: &Stage) -> Result<Vec<String>, Fault> {
    stage.at("begin").await;
    if stage.stops_in == "nothing" {
        return Err(Fault::own("not this time"));
    }
    let asked =
        phase!("asked", stale_after = "30s", on_error = "release", async { stage.play(w, "asked").await });
    let again = phase!("again", on_stale = "retry", async { stage.play(w, "again").await });
    let mail = phase!("mail", mode = "record_after", async { stage.play(w, "mail").await });
    stage.at("end").await;
    Ok(vec![asked, again, mail])
}

/// The error with which a call whose body had begun already lost its claim.
async fn lost(call: impl Future<Output = Result<Vec<String>, Fault>>) -> Error {
    match call.await {
        Err(Fault::Idem(error @ Error::ClaimLost { .. })) => error,
        other => panic!("it goes on: {other:?}"),
    }
}

/// Lets an heir take the job over, though the row wants a person: they said that it may run again.
async fn succeed(site: &Site, w: &Worker, key: &str, id: &str, stage: &Stage) {
    site.end_lease(w, key).await;
    reviewed(heir(w, id, stage)).await;
    let freed = w.idem.resolve(key, Resolution::Retry).await;
    assert!(matches!(freed, Ok(Resolved::Changed { .. })), "{freed:?}");
}

pub(crate) async fn a_job_that_was_taken_over_completes_no_phase(site: &Site) {
    let w = site.worker().await;
    for place in ["again", "mail"] {
        let (a, b) = (Stage::new("A", place), Stage::new("B", place));
        let key = format!("zombie:{place}");
        let mut late = Box::pin(zombie(&w, place, &a));
        a.gate.stops(&mut late).await;
        succeed(site, &w, &key, place, &b).await;
        let mut heir = Box::pin(heir(&w, place, &b));
        b.gate.stops(&mut heir).await;
        // Both are in the phase. It has no row that could tell them apart: its job's has.
        assert_eq!(w.find(&format!("{key}/{place}")).await, None);
        a.gate.open();
        let error = lost(late).await;
        assert_eq!(error.key().map(ToString::to_string), Some(format!("{key}/{place}")), "{error:?}");
        assert_eq!(w.find(&format!("{key}/{place}")).await, None);
        b.gate.open();
        let done = heir.await.expect("the heir's own");
        let by = |phase| if phase == place || (place == "again" && phase == "mail") { "B" } else { "A" };
        assert_eq!(done, ["asked", "again", "mail"].map(by));
        assert!(w.row(&format!("{key}/{place}")).await.result.is_some_and(|result| result == "\"B\""));
    }
}

pub(crate) async fn a_job_that_was_taken_over_enters_no_phase(site: &Site) {
    let w = site.worker().await;
    let (a, b) = (Stage::new("A", "begin"), Stage::new("B", "begin"));
    let mut late = Box::pin(zombie(&w, "0", &a));
    a.gate.stops(&mut late).await;
    succeed(site, &w, "zombie:0", "0", &b).await;
    let mut successor = Box::pin(heir(&w, "0", &b));
    b.gate.stops(&mut successor).await;
    a.gate.open();
    lost(late).await;
    assert_eq!((site.effects("asked"), w.find("zombie:0/asked").await), (0, None));
    b.gate.open();
    successor.await.expect("the heir's own");
    assert_eq!(site.effects("asked"), 1);

    let (a, b) = (Stage::new("A", "asked"), Stage::new("B", "end"));
    let mut late = Box::pin(zombie(&w, "1", &a));
    a.gate.stops(&mut late).await;
    site.end_lease(&w, "zombie:1").await;
    reviewed(heir(&w, "1", &b)).await;
    // The zombie's own phase is stale for whoever holds the job, and a person is asked.
    let freed = w.idem.resolve("zombie:1", Resolution::Retry).await;
    assert!(matches!(freed, Ok(Resolved::Changed { .. })), "{freed:?}");
    let (named, _) = reviewed(heir(&w, "1", &b)).await;
    assert_eq!(named, "zombie:1/asked");
    let stands = at_rest(w.row("zombie:1/asked").await);
    a.gate.open();
    lost(late).await;
    assert_eq!(at_rest(w.row("zombie:1/asked").await), stands);
    assert_eq!((site.effects("asked"), site.effects("again")), (2, 1));
}

pub(crate) async fn a_job_that_was_taken_over_leaves_its_heirs_phases_alone(site: &Site) {
    let w = site.worker().await;
    // There were executions before, so that it looks before it claims.
    failed(heir(&w, "2", &Stage::new("F", "nothing"))).await;
    let (a, b) = (Stage::new("A", "begin"), Stage::new("B", "asked"));
    let mut late = Box::pin(zombie(&w, "2", &a));
    a.gate.stops(&mut late).await;
    succeed(site, &w, "zombie:2", "2", &b).await;
    let mut successor = Box::pin(heir(&w, "2", &b));
    b.gate.stops(&mut successor).await;
    let stands = at_rest(w.row("zombie:2/asked").await);
    a.gate.open();
    // It meets a claim that is alive, and not its own.
    let met = late.await;
    assert!(
        matches!(&met, Err(Fault::Idem(Error::InProgress { .. } | Error::ClaimLost { .. }))),
        "it goes on: {met:?}"
    );
    assert_eq!(at_rest(w.row("zombie:2/asked").await), stands);
    b.gate.open();
    successor.await.expect("the heir's own");
    assert_eq!(site.effects("asked"), 1);
}

pub(crate) async fn a_job_that_a_person_freed_by_force_completes_no_phase(site: &Site) {
    let w = site.worker().await;
    let a = Stage::new("A", "asked");
    let mut late = Box::pin(zombie(&w, "1", &a));
    a.gate.stops(&mut late).await;
    let forced = w.idem.resolve("zombie:1", Resolution::Retry).force().await;
    assert!(matches!(forced, Ok(Resolved::Changed { .. })), "{forced:?}");
    a.gate.open();
    lost(late).await;
    assert_eq!(w.row("zombie:1/asked").await.status, Status::Processing);
}

pub(crate) async fn a_phase_that_ends_late_counts_while_nobody_took_the_job(site: &Site) {
    let w = site.worker().await;
    let a = Stage::new("A", "asked");
    let mut late = Box::pin(zombie(&w, "1", &a));
    a.gate.stops(&mut late).await;
    site.end_lease(&w, "zombie:1").await;
    reviewed(zombie(&w, "1", &a)).await;
    let freed = w.idem.resolve("zombie:1", Resolution::Retry).await;
    assert!(matches!(freed, Ok(Resolved::Changed { .. })), "{freed:?}");
    a.gate.open();
    // The phase happened, and its row says so. What comes behind it belongs to whoever takes the job.
    let _ = late.await;
    assert_eq!(w.row("zombie:1/asked").await.status, Status::Completed);
    let b = Stage::new("B", "nowhere");
    let done = heir(&w, "1", &b).await.expect("the heir's own");
    assert_eq!(done[0], "A");
    assert_eq!(site.effects("asked"), 1);
}
