//! A person frees the key of a job that is alive: not without force, and then its worker is told, its end does not
//! count, and a line tells who did it.

use std::time::Duration;

use idem_runtime::{Error, ErrorKind, Resolution, Resolved, current, idempotent, record::Status};
use idem_tests::{Backend, Child, child::Parent};
use serde_json::json;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    call::{executed, refused, replayed},
    gate::Gate,
    site::{Site, Worker, at_rest},
};

const LINES: &str = "SELECT count(*) FROM idempotency_keys_audit";

/// Ends when it is told that it has lost its claim, or when it may.
#[idempotent(key = "a23:<id>", stale_after = "1s", idem = w.idem)]
async fn held(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    let mine = current();
    tokio::select! {
        biased;
        () = mine.lost() => w.effect("told"),
        () = gate.pass() => {}
    }
    Ok(format!("attempt {}", mine.attempt()))
}

#[idempotent(key = "a23-quick:<id>", idem = w.idem)]
async fn quick(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(format!("run {}", w.effects(id)))
}

fn open() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

/// A holder that is alive.
async fn holder(w: &Worker, id: &'static str) -> JoinHandle<Result<String, Error>> {
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { held(&w, id, &gate).await }
    });
    gate.arrived().await;
    running
}

/// It is told within its next heartbeats, and what it returns does not count.
async fn is_told(holder: JoinHandle<Result<String, Error>>) {
    let ended = timeout(Duration::from_secs(30), holder).await.expect("told").expect("no panic");
    assert_eq!(ended.expect_err("its claim is lost").kind(), ErrorKind::ClaimLost);
}

fn reason(resolved: Resolved) -> String {
    match resolved {
        Resolved::Refused { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

fn is_changed(resolved: &Resolved, was: &Status, is: &Status) {
    match resolved {
        Resolved::Changed { from, to, .. } => assert_eq!((from, to), (was, is)),
        other => panic!("{other:?}"),
    }
}

fn resolutions() -> [Resolution; 3] {
    [Resolution::Retry, Resolution::Failed, Resolution::Completed(Some(json!("by hand")))]
}

pub(super) async fn a23_without_force_a_living_holder_is_left_alone(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    let claim = w.row("a23:x").await;
    for resolution in resolutions() {
        let refused = person.idem.resolve("a23:x", resolution).note("stuck?").await.expect("an answer");
        let reason = reason(refused);
        for shown in [claim.owner.as_deref(), claim.worker.as_deref(), Some("alive")] {
            assert!(reason.contains(shown.expect("known")), "{reason}");
        }
    }
    let reason = reason(person.idem.forget("a23:x").note("stuck?").await.expect("an answer"));
    assert!(reason.contains("alive"), "{reason}");
    let row = w.row("a23:x").await;
    assert_eq!((row.status, row.owner, row.fence), (Status::Processing, claim.owner, claim.fence));
    gate.open();
    assert_eq!(running.await.expect("no panic"), "attempt 1");
    assert_eq!((site.effects("x"), site.effects("told")), (1, 0));
    let unknown = person.idem.resolve("a23:nobody", Resolution::Retry).await.expect("an answer");
    assert_eq!(unknown, Resolved::NotFound);
}

pub(super) async fn a23_by_force_its_fence_is_passed_and_it_is_told(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let holder = holder(&w, "x").await;
    let claim = w.row("a23:x").await;
    let freeing = person.idem.resolve("a23:x", Resolution::Retry).note("it must go").force();
    is_changed(&freeing.await.expect("an answer"), &Status::Processing, &Status::Released);
    let row = w.row("a23:x").await;
    assert!(row.fence > claim.fence, "{} after {}", row.fence, claim.fence);
    // The next one is under way before the first one has ended.
    assert_eq!(executed(held(&person, "x", &open())).await, "attempt 2");
    is_told(holder).await;
    assert_eq!(replayed(held(&w, "x", &open())).await, "attempt 2");
    assert_eq!(site.effects("told"), 1);
}

pub(super) async fn a23_a_result_that_a_person_gives_by_force_stays(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let holder = holder(&w, "x").await;
    let deed = person.idem.resolve("a23:x", Resolution::Completed(Some(json!("by hand")))).force();
    is_changed(&deed.await.expect("an answer"), &Status::Processing, &Status::Completed);
    assert_eq!(replayed(held(&person, "x", &open())).await, "by hand");
    is_told(holder).await;
    assert_eq!(replayed(held(&w, "x", &open())).await, "by hand");
    assert_eq!(site.effects("x"), 1);
}

pub(super) async fn a23_a_key_that_is_given_up_by_force_stays_given_up(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let holder = holder(&w, "x").await;
    let deed = person.idem.resolve("a23:x", Resolution::Failed).note("wrong order").force();
    is_changed(&deed.await.expect("an answer"), &Status::Processing, &Status::Failed);
    is_told(holder).await;
    let error = refused(ErrorKind::PreviouslyFailed, held(&w, "x", &open())).await;
    assert!(error.to_string().contains("wrong order"), "{error}");
    assert_eq!(site.effects("x"), 1);
}

/// A row that is gone is not written anew by whoever held it, and a new life is not taken for the old one.
pub(super) async fn a23_a_row_that_is_forgotten_by_force_stays_away(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let first = holder(&w, "x").await;
    let claim = w.row("a23:x").await;
    person.idem.forget("a23:x").note("test data").force().await.expect("an answer");
    is_told(first).await;
    assert_eq!(w.find("a23:x").await, None);

    let second = holder(&w, "x").await;
    let row = w.row("a23:x").await;
    assert!(row.fence > claim.fence && row.attempt == 1, "{row:?}");
    person.idem.forget("a23:x").note("once more").force().await.expect("an answer");
    assert_eq!(executed(held(&person, "x", &open())).await, "attempt 1");
    let row = at_rest(w.row("a23:x").await);
    is_told(second).await;
    assert_eq!(at_rest(w.row("a23:x").await), row);
}

pub(super) async fn a23_a_completed_key_is_freed_by_force_alone_and_its_result_is_kept(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    assert_eq!(executed(quick(&w, "x")).await, "run 1");
    let row = at_rest(w.row("a23-quick:x").await);
    for resolution in resolutions() {
        let refused = person.idem.resolve("a23-quick:x", resolution).note("again").await.expect("an answer");
        assert!(reason(refused).contains("completed"));
    }
    assert!(reason(person.idem.forget("a23-quick:x").await.expect("an answer")).contains("completed"));
    assert_eq!(at_rest(w.row("a23-quick:x").await), row);

    let deed = person.idem.resolve("a23-quick:x", Resolution::Retry).note("again").force();
    is_changed(&deed.await.expect("an answer"), &Status::Completed, &Status::Released);
    assert_eq!(executed(quick(&w, "x")).await, "run 2");
    assert_eq!(replayed(quick(&w, "x")).await, "run 2");
    if site.backend() != Backend::Memory {
        let kept = "SELECT count(*) FROM idempotency_keys_audit
            WHERE from_status = 'completed' AND note = 'again' AND old_result LIKE '%run 1%'";
        assert_eq!(site.number(kept).await, 1, "the old result");
    }
}

pub(super) async fn a23_a_purge_takes_no_living_row(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    executed(quick(&w, "kept")).await;
    assert_eq!(person.idem.purge().await.expect("a purge"), 0);
    if site.backend() != Backend::Memory {
        // Whatever somebody has written there.
        site.set("a23:x", "expires_at = 1").await;
        assert_eq!(person.idem.purge().await.expect("a purge"), 0);
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), "attempt 1");
    assert_eq!(replayed(quick(&w, "kept")).await, "run 1");
}

/// Whoever was not the first has looked again, or is told to: what they did is one chain, and the row is at its end.
pub(super) async fn a23_persons_who_decide_at_once_do_not_overrule_each_other_unseen(site: &Site) {
    let persons = [site.worker().await, site.worker().await];
    for round in 0..10 {
        let key = format!("a23-quick:{round}");
        site.execute(&format!(
            "INSERT INTO idempotency_keys (\"key\", status) VALUES ('{key}', 'needs_review')"
        ))
        .await;
        let mut deeds = JoinSet::new();
        for (n, resolution) in resolutions().into_iter().enumerate() {
            let deed = persons[n % 2].idem.resolve(&key, resolution).note("at once");
            deeds.spawn(async move { deed.await.expect("an answer") });
        }
        let mut steps: Vec<_> = deeds.join_all().await;
        steps.retain(|step| matches!(step, Resolved::Changed { .. }));
        let lines = format!("{LINES} WHERE \"key\" = '{key}'");
        assert_eq!(site.number(&lines).await, i64::try_from(steps.len()).expect("few"), "{steps:?}");
        let (mut at, mut gone) = (Status::NeedsReview, 0);
        while let Some(to) = steps.iter().find_map(|step| match step {
            Resolved::Changed { from, to, .. } if *from == at => Some(to.clone()),
            _ => None,
        }) {
            (at, gone) = (to, gone + 1);
        }
        assert_eq!((gone, persons[0].row(&key).await.status), (steps.len(), at), "{steps:?}");
    }
}

#[idempotent(key = "a23-foreign:<id>", idem = w.idem)]
async fn foreign(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("ours".to_owned())
}

pub(super) async fn a23_a_foreign_holder_is_left_alone_unless_forced(site: &Site) {
    let w = site.worker().await;
    site.execute("INSERT INTO idempotency_keys (\"key\") VALUES ('a23-foreign:x')").await;
    let refused_retry = w.idem.resolve("a23-foreign:x", Resolution::Retry).await.expect("an answer");
    assert!(reason(refused_retry).contains("foreign"));
    refused(ErrorKind::InProgress, foreign(&w, "x")).await;
    let deed = w.idem.resolve("a23-foreign:x", Resolution::Retry).note("its host is gone").force();
    is_changed(&deed.await.expect("an answer"), &Status::Processing, &Status::Released);
    assert_eq!(executed(foreign(&w, "x")).await, "ours");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn holder_elsewhere() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    let gate = Gate::new();
    let mut call = Box::pin(held(&w, "x", &gate));
    gate.stops(&mut call).await;
    parent.say("entered");
    let ended = call.await;
    parent.say(&format!("ended {:?}", ended.map_err(|error| error.kind())));
}

pub(super) async fn a23_a_worker_of_another_process_is_freed_by_force_and_told(site: &Site) {
    let w = site.worker().await;
    let mut child = Child::spawn(&mut site.child("cases::a23::holder_elsewhere"));
    child.expect("entered");
    let stuck = w.idem.resolve("a23:x", Resolution::Retry).note("stuck?").await.expect("an answer");
    assert!(reason(stuck).contains("alive"));
    let deed = w.idem.resolve("a23:x", Resolution::Retry).note("it must go").force();
    is_changed(&deed.await.expect("an answer"), &Status::Processing, &Status::Released);
    assert_eq!(executed(held(&w, "x", &open())).await, "attempt 2");
    assert_eq!(child.expect("ended"), "Err(ClaimLost)");
    assert_eq!(replayed(held(&w, "x", &open())).await, "attempt 2");
    assert_eq!((site.effects("x"), site.effects("told")), (2, 1));
}

pub(super) async fn a23_each_deed_leaves_its_line_and_a_refusal_none(site: &Site) {
    let (w, person) = (site.worker().await, site.worker().await);
    let holder = holder(&w, "x").await;
    for resolution in resolutions() {
        person.idem.resolve("a23:x", resolution).actor("anna").note("stuck?").await.expect("an answer");
    }
    person.idem.forget("a23:x").actor("anna").await.expect("an answer");
    person.idem.resolve("a23:nobody", Resolution::Retry).force().await.expect("an answer");
    assert_eq!(site.number(LINES).await, 0, "nothing was done");
    for (n, resolution) in resolutions().into_iter().enumerate() {
        let deed = person.idem.resolve("a23:x", resolution).actor("anna").note(format!("deed {n}")).force();
        assert!(matches!(deed.await.expect("an answer"), Resolved::Changed { .. }));
    }
    person.idem.forget("a23:x").actor("anna").note("deed 3").force().await.expect("an answer");
    let steps = [
        ("processing", "released"),
        ("released", "failed"),
        ("failed", "completed"),
        ("completed", "forgotten"),
    ];
    for (n, (from, to)) in steps.into_iter().enumerate() {
        let line = format!(
            "{LINES} WHERE actor = 'anna' AND from_status = '{from}' AND to_status = '{to}' AND note = 'deed {n}'"
        );
        assert_eq!(site.number(&line).await, 1, "{from} to {to}");
    }
    assert_eq!(site.number(LINES).await, 4);
    is_told(holder).await;
}
