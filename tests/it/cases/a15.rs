//! A worker is killed, and many come for its key, some of the same name: one of them has it, and none before the end
//! of the lease.

use std::{
    env,
    time::{Duration, Instant},
};

use idem_runtime::{Error, ErrorKind, current, idempotent, record::Status, with_outcome};
use idem_tests::{Child, child::Parent};
use tokio::task::JoinSet;

use super::{
    call::{executed, refused, replayed, took_over},
    gate::Gate,
    site::{Site, Worker},
};

/// What every worker here is called.
const NAME: &str = "billing@host:1";

const JOB: &str = "IDEM_CASE_JOB";

#[idempotent(key = "a15:<id>", on_stale = "retry", idem = w.idem)]
async fn charge(w: &Worker, id: &str, stays: bool) -> Result<String, Error> {
    w.effect(id);
    if stays {
        let parent = Parent::attach().expect("a parent");
        parent.say("entered");
        let _ = parent.hear();
    }
    Ok(format!("attempt {}", current().attempt()))
}

#[idempotent(key = "a15-alert:<id>", idem = w.idem)]
async fn charge_alert(w: &Worker, id: &str, stays: bool) -> Result<String, Error> {
    w.effect(id);
    if stays {
        let parent = Parent::attach().expect("a parent");
        parent.say("entered");
        let _ = parent.hear();
    }
    Ok(format!("attempt {}", current().attempt()))
}

/// Its lease is short, so that it can be outlived.
#[idempotent(key = "a15-here:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn here(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(format!("attempt {}", current().attempt()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn holder() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent_by(|builder, _| builder.worker(NAME)).await;
    let result = match env::var(JOB).expect("set by the parent").as_str() {
        "alert" => charge_alert(&w, "x", true).await,
        _ => charge(&w, "x", true).await,
    };
    parent.say(&match result {
        Ok(value) => format!("ended {value}"),
        Err(error) => format!("ended {:?}", error.kind()),
    });
}

/// Five callers of one process, released together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn heirs() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent_by(|builder, _| builder.worker(NAME)).await;
    let job = env::var(JOB).expect("set by the parent");
    parent.say("ready");
    let _ = parent.hear();
    let mut callers = JoinSet::new();
    for _ in 0..5 {
        let (w, job) = (w.clone(), job.clone());
        callers.spawn(async move {
            match job.as_str() {
                "alert" => with_outcome(charge_alert(&w, "x", false)).await.1,
                _ => with_outcome(charge(&w, "x", false)).await.1,
            }
        });
    }
    let outcomes = callers.join_all().await;
    let outcomes: Vec<_> = outcomes.into_iter().map(|one| format!("{:?}", one.expect("entered"))).collect();
    parent.say(&format!("had {}", outcomes.join(" ")));
}

/// A worker of this name is in its body, in a process of its own.
fn holder_of(site: &Site, job: &str) -> Child {
    let mut child = Child::spawn(site.child("cases::a15::holder").env(JOB, job));
    child.expect("entered");
    child
}

/// What twenty callers of four processes have, who come together.
fn outcomes_of_heirs(site: &Site, job: &str, end: impl FnOnce()) -> Vec<String> {
    let mut processes: Vec<_> =
        (0..4).map(|_| Child::spawn(site.child("cases::a15::heirs").env(JOB, job))).collect();
    for process in &mut processes {
        process.expect("ready");
    }
    end();
    for process in &mut processes {
        process.say("go");
    }
    let had: Vec<_> = processes.iter_mut().map(|process| process.expect("had")).collect();
    had.iter().flat_map(|had| had.split(' ').map(str::to_owned)).collect()
}

/// Ends the lease of a key, and has done so when this returns.
fn end_lease_of(site: &Site, key: &'static str) {
    tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(site.set(key, "lease_until = 1"));
    });
}

pub(super) async fn a15_of_twenty_heirs_from_four_processes_one_takes_over(site: &Site) {
    let w = site.worker_by(|builder| builder.worker(NAME)).await;
    holder_of(site, "retry").kill();
    refused(ErrorKind::InProgress, charge(&w, "x", false)).await;
    let row = w.row("a15:x").await;
    assert_eq!((row.status, row.attempt, row.worker.as_deref()), (Status::Processing, 1, Some(NAME)));

    let outcomes = outcomes_of_heirs(site, "retry", || end_lease_of(site, "a15:x"));
    assert_eq!(outcomes.len(), 20);
    let heirs = outcomes.iter().filter(|outcome| *outcome == "TookOver").count();
    let idle = ["Replayed", "Refused(InProgress)"];
    let others = outcomes.iter().filter(|outcome| idle.contains(&outcome.as_str()));
    assert_eq!((heirs, others.count()), (1, 19), "{outcomes:?}");
    assert_eq!(site.effects("x"), 2);
    let row = w.row("a15:x").await;
    assert_eq!((row.status, row.attempt, row.takeovers), (Status::Completed, 2, 1));
    assert_eq!(replayed(charge(&w, "x", false)).await, "attempt 2");
}

/// Whose key is for a person: all twenty are told, and the row is turned over once.
pub(super) async fn a15_of_twenty_heirs_under_alert_none_runs(site: &Site) {
    let w = site.worker().await;
    holder_of(site, "alert").kill();
    refused(ErrorKind::InProgress, charge_alert(&w, "x", false)).await;
    let outcomes = outcomes_of_heirs(site, "alert", || end_lease_of(site, "a15-alert:x"));
    assert_eq!(outcomes, vec!["Refused(NeedsReview)"; 20]);
    assert_eq!((site.effects("x"), w.row("a15-alert:x").await.status), (1, Status::NeedsReview));
    let lines = "SELECT count(*) FROM idempotency_keys_audit WHERE to_status = 'needs_review'";
    assert_eq!(site.number(lines).await, 1, "turned over once");
}

/// A new process with the name of the dead one has no more right to its row than any other.
pub(super) async fn a15_a_namesake_has_no_right_to_the_row(site: &Site) {
    let w = site.worker_by(|builder| builder.worker(NAME)).await;
    for job in ["retry", "alert"] {
        holder_of(site, job).kill();
    }
    let rows = [w.row("a15:x").await, w.row("a15-alert:x").await];
    for _ in 0..3 {
        let namesake = site.worker_by(|builder| builder.worker(NAME)).await;
        refused(ErrorKind::InProgress, charge(&namesake, "x", false)).await;
        refused(ErrorKind::InProgress, charge_alert(&namesake, "x", false)).await;
    }
    for row in rows {
        let now = w.row(&row.key).await;
        assert_eq!((now.owner, now.fence, now.lease_until), (row.owner, row.fence, row.lease_until));
    }
    site.set("a15-alert:x", "lease_until = 1").await;
    refused(ErrorKind::NeedsReview, charge_alert(&w, "x", false)).await;
    assert_eq!(site.effects("x"), 2);
}

/// One of the name that was believed dead comes back when another of its name has the key: it is told.
pub(super) async fn a15_a_namesake_that_comes_back_is_not_its_heir(site: &Site) {
    let w = site.worker_by(|builder| builder.worker(NAME)).await;
    let mut child = holder_of(site, "retry");
    child.stop();
    site.set("a15:x", "lease_until = 1").await;
    assert_eq!(took_over(charge(&w, "x", false)).await, "attempt 2");
    child.resume();
    child.say("go on");
    assert_eq!(child.expect("ended"), "ClaimLost");
    assert_eq!(replayed(charge(&w, "x", false)).await, "attempt 2");
}

/// A run of the same process, which is alive in another task, is not taken for one that died, however long it takes.
pub(super) async fn a15_a_run_of_the_same_process_is_never_adopted(site: &Site) {
    let w = site.worker_by(|builder| builder.worker(NAME)).await;
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(here(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    let claimed = w.row("a15-here:x").await;
    let end = Instant::now() + Duration::from_millis(1_500);
    let mut looks = 0;
    while Instant::now() < end {
        refused(ErrorKind::InProgress, here(&w, "x", &gate)).await;
        if site.backend() != idem_tests::Backend::Memory {
            // As after a restart that kept the name.
            let namesake = site.worker_by(|builder| builder.worker(NAME)).await;
            refused(ErrorKind::InProgress, here(&namesake, "x", &gate)).await;
        }
        looks += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(looks > 3, "{looks}");
    let row = w.row("a15-here:x").await;
    assert_eq!((row.owner, row.fence, row.attempt), (claimed.owner, claimed.fence, 1));
    gate.open();
    assert_eq!(running.await.expect("no panic"), "attempt 1");
    assert_eq!(site.effects("x"), 1);
}
