//! A job that meets its own key again from inside: it is told at once, and its own claim is left as it is.

use std::time::{Duration, Instant};

use idem_runtime::{Error, ErrorKind, Idem, current, idempotent, phase, record::Status};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::timeout,
};

use super::{
    call::{executed, executed_sync, failed, refused, replayed, replayed_sync},
    site::{Site, Worker},
};

/// Much less than a wait would take.
const AT_ONCE: Duration = Duration::from_secs(10);

/// What the inside of a body does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Inside {
    Nothing,
    Itself,
    ItselfBeside,
    Waiting,
    Other,
    WaitingOther,
    Between,
    Recorded,
    Synchronous,
    InAPhase,
}

#[idempotent(key = "a21:<id>", idem = w.idem)]
async fn outer(w: &Worker, id: &str, inside: Inside) -> Result<String, Error> {
    w.effect(id);
    let key = current().key().to_string();
    let claim = w.row(&key).await;
    let began = Instant::now();
    let met = match inside {
        Inside::Nothing => return Ok("done".to_owned()),
        Inside::Itself => Box::pin(outer(w, id, Inside::Nothing)).await.map(drop),
        Inside::ItselfBeside => {
            let (one, other) = tokio::join!(
                Box::pin(outer(w, id, Inside::Nothing)),
                Box::pin(async {
                    tokio::task::yield_now().await;
                    outer(w, id, Inside::Nothing).await
                })
            );
            assert_eq!(other.expect_err("the same task").kind(), ErrorKind::Reentered);
            one.map(drop)
        }
        Inside::Waiting => Box::pin(waiting(w, id, Inside::Nothing)).await.map(drop),
        Inside::Other => other(w, id).await.map(drop),
        Inside::WaitingOther => waiting_other(w, id).await.map(drop),
        Inside::Between => Box::pin(between(w, "between", id)).await.map(drop),
        Inside::Recorded => recorded(w, id).await.map(drop),
        Inside::Synchronous => synchronous(w, id).map(drop),
        Inside::InAPhase => {
            let mut met = Ok(());
            phase!("inside", async {
                met = Box::pin(outer(w, id, Inside::Nothing)).await.map(drop);
                Ok(())
            });
            met
        }
    };
    let error = met.expect_err("the key is held by an enclosing body");
    assert_eq!(error.kind(), ErrorKind::Reentered, "{inside:?}: {error}");
    assert!(!error.is_retryable() && began.elapsed() < AT_ONCE, "{inside:?}: {:?}", began.elapsed());
    assert_eq!(error.key().map(ToString::to_string), Some(key.clone()));
    let now = w.row(&key).await;
    let stands = (now.status, now.owner, now.fence, now.attempt);
    assert_eq!(stands, (Status::Processing, claim.owner, claim.fence, 1), "{inside:?}");
    assert!(!current().is_lost());
    Ok("done".to_owned())
}

#[idempotent(
    key = "a21:<id>",
    on_busy = "wait",
    wait_for = "30s",
    allow_overlap(outer, other, waiting_other, recorded, synchronous),
    idem = w.idem
)]
async fn waiting(w: &Worker, id: &str, inside: Inside) -> Result<String, Error> {
    w.effect(id);
    match inside {
        Inside::Waiting => {
            let began = Instant::now();
            let error = Box::pin(waiting(w, id, Inside::Nothing)).await.expect_err("its own key");
            assert_eq!(error.kind(), ErrorKind::Reentered);
            assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        }
        Inside::Nothing => {}
        other => panic!("{other:?}"),
    }
    Ok("done".to_owned())
}

#[idempotent(key = "a21:<id>", allow_overlap(outer, waiting_other, recorded, synchronous), idem = w.idem)]
async fn other(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("other".to_owned())
}

#[idempotent(
    key = "a21:<id>",
    on_busy = "wait",
    wait_for = "30s",
    allow_overlap(outer, recorded, synchronous),
    idem = w.idem
)]
async fn waiting_other(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("other".to_owned())
}

#[idempotent(key = "a21:<id>", mode = "record_after", allow_overlap(outer, synchronous), idem = w.idem)]
async fn recorded(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("recorded".to_owned())
}

#[idempotent(key = "a21:<id>", allow_overlap(outer), idem = w.idem)]
fn synchronous(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("synchronous".to_owned())
}

/// A job of another key, inside of which the first one is met again.
#[idempotent(key = "a21-between:<name>", on_error = "release", idem = w.idem)]
async fn between(w: &Worker, name: &str, id: &str) -> Result<String, Error> {
    w.effect(name);
    Box::pin(outer(w, id, Inside::Nothing)).await
}

/// With one connection, and with five.
async fn with_connections(site: &Site, play: impl AsyncFn(&Worker, &str)) {
    for connections in [1, 5] {
        let w = site.worker_by(|builder| builder.connections(connections)).await;
        timeout(Duration::from_mins(1), play(&w, &connections.to_string())).await.expect("no deadlock");
    }
}

pub(super) async fn a21_a_job_that_meets_its_own_key_is_told_at_once(site: &Site) {
    with_connections(site, async |w, of| {
        for inside in [
            Inside::Itself,
            Inside::ItselfBeside,
            Inside::Waiting,
            Inside::Other,
            Inside::WaitingOther,
            Inside::Between,
            Inside::Recorded,
            Inside::Synchronous,
            Inside::InAPhase,
        ] {
            let id = format!("{of}-{inside:?}");
            assert_eq!(executed(outer(w, &id, inside)).await, "done");
            assert_eq!(replayed(outer(w, &id, inside)).await, "done");
            assert_eq!(w.effects(&id), 1, "{inside:?}");
        }
        let id = format!("{of}-waits");
        assert_eq!(executed(waiting(w, &id, Inside::Waiting)).await, "done");
        assert_eq!(replayed(waiting(w, &id, Inside::Waiting)).await, "done");
        assert_eq!(w.effects(&id), 1);
    })
    .await;
}

#[idempotent(key = "a21-handed:<id>", on_error = "release", idem = w.idem)]
async fn hands_on(w: &Worker, id: &str, again: bool) -> Result<String, Error> {
    w.effect(id);
    if again { Box::pin(hands_on(w, id, false)).await } else { Ok("done".to_owned()) }
}

/// Who hands the refusal on has failed by its own error, and its own policy says what becomes of its own claim.
pub(super) async fn a21_a_refusal_that_is_handed_on_is_the_bodys_own_error(site: &Site) {
    let w = site.worker().await;
    let error = failed(hands_on(&w, "x", true)).await;
    assert_eq!(error.kind(), ErrorKind::Reentered);
    assert_eq!(w.row("a21-handed:x").await.status, Status::Released);
    assert_eq!(executed(hands_on(&w, "x", false)).await, "done");
    assert_eq!(site.effects("x"), 2);
}

#[idempotent(key = "a21-sync:<id>", idem = w.idem)]
fn sync_outer(w: &Worker, id: &str, depth: u32) -> Result<u32, Error> {
    w.effect(id);
    if depth > 0 {
        let began = Instant::now();
        let error = sync_outer(w, id, depth - 1).expect_err("its own key");
        assert_eq!(error.kind(), ErrorKind::Reentered);
        let error = sync_waiting(w, id).expect_err("its own key");
        assert_eq!(error.kind(), ErrorKind::Reentered);
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    }
    Ok(depth)
}

#[idempotent(key = "a21-sync:<id>", on_busy = "wait", wait_for = "30s", allow_overlap(sync_outer), idem = w.idem)]
fn sync_waiting(w: &Worker, id: &str) -> Result<u32, Error> {
    w.effect(id);
    Ok(0)
}

pub(super) async fn a21_a_synchronous_job_that_meets_its_own_key_is_told_at_once(site: &Site) {
    with_connections(site, async |w, of| {
        let (w, id) = (w.clone(), of.to_owned());
        let playing = spawn_blocking(move || {
            assert_eq!(executed_sync(|| sync_outer(&w, &id, 3)), 3);
            assert_eq!(replayed_sync(|| sync_outer(&w, &id, 3)), 3);
            assert_eq!(w.effects(&id), 1);
        });
        playing.await.expect("no panic");
    })
    .await;
}

/// What a body starts elsewhere.
#[derive(Clone, Copy, Debug)]
enum Elsewhere {
    Task,
    Blocking,
    Thread,
}

#[idempotent(key = "a21-child:<id>", idem = w.idem)]
async fn parent(w: Worker, id: String, elsewhere: Elsewhere) -> Result<String, Error> {
    w.effect(&id);
    let (worker, name) = (w.clone(), id.clone());
    let error = match elsewhere {
        Elsewhere::Task => {
            let call = async move { refused(ErrorKind::InProgress, task(worker, name)).await };
            tokio::spawn(call).await.expect("no panic")
        }
        Elsewhere::Blocking => {
            spawn_blocking(move || child(&worker, &name).expect_err("held")).await.expect("no panic")
        }
        Elsewhere::Thread => {
            std::thread::spawn(move || child(&worker, &name).expect_err("held")).join().expect("no panic")
        }
    };
    assert_eq!(error.kind(), ErrorKind::InProgress, "{elsewhere:?}");
    assert!(error.is_retryable());
    Ok("done".to_owned())
}

#[idempotent(key = "a21-child:<id>", allow_overlap(parent, child, patient), idem = w.idem)]
async fn task(w: Worker, id: String) -> Result<String, Error> {
    w.effect(&id);
    Ok("a second run".to_owned())
}

#[idempotent(key = "a21-child:<id>", allow_overlap(parent, patient), idem = w.idem)]
fn child(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("a second run".to_owned())
}

#[idempotent(key = "a21-child:<id>", on_busy = "wait", wait_for = "30s", allow_overlap(parent), idem = w.idem)]
async fn patient(w: Worker, id: String) -> Result<String, Error> {
    w.effect(&id);
    Ok("a second run".to_owned())
}

/// A child of the body is another caller: busy, or, if it waits and is not waited for, answered with the value.
pub(super) async fn a21_a_task_that_a_body_starts_is_another_caller(site: &Site) {
    with_connections(site, async |w, of| {
        for elsewhere in [Elsewhere::Task, Elsewhere::Blocking, Elsewhere::Thread] {
            let id = format!("{of}-{elsewhere:?}");
            assert_eq!(executed(parent(w.clone(), id.clone(), elsewhere)).await, "done");
            assert_eq!(replayed(parent(w.clone(), id.clone(), elsewhere)).await, "done");
            assert_eq!(w.effects(&id), 1);
        }
    })
    .await;
}

#[idempotent(key = "a21-child:<id>", allow_overlap(parent, task, child, patient), idem = w.idem)]
async fn starts(w: Worker, id: String, children: &mut JoinSet<String>) -> Result<String, Error> {
    w.effect(&id);
    for _ in 0..5 {
        let (w, id) = (w.clone(), id.clone());
        children.spawn(async move { replayed(patient(w, id)).await });
    }
    tokio::task::yield_now().await;
    Ok("done".to_owned())
}

pub(super) async fn a21_a_child_that_waits_has_its_parents_value(site: &Site) {
    with_connections(site, async |w, of| {
        let (id, mut children) = (format!("{of}-waited"), JoinSet::new());
        // They are there before their parent has ended, and hear of its value.
        assert_eq!(executed(starts(w.clone(), id.clone(), &mut children)).await, "done");
        assert_eq!(children.join_all().await, vec!["done"; 5]);
        assert_eq!(w.effects(&id), 1);
    })
    .await;
}

#[idempotent(key = "a21-handles:<id>", idem = idem)]
async fn by(idem: &Idem, id: &str, inside: Option<(&Idem, ErrorKind)>) -> Result<String, Error> {
    if let Some((other, kind)) = inside {
        let error = Box::pin(by(other, id, None)).await.expect_err("held");
        assert_eq!(error.kind(), kind);
    }
    Ok(id.to_owned())
}

/// A handle of its own to the same keys is as good as another process; a key of another namespace is another one.
pub(super) async fn a21_another_handle_is_another_caller(site: &Site) {
    let w = site.worker().await;
    let other = site.worker_by(|builder| builder).await;
    let elsewhere = site.worker_by(|builder| builder.namespace("elsewhere")).await;
    executed(by(&w.idem, "clone", Some((&w.idem.clone(), ErrorKind::Reentered)))).await;
    if site.backend() != idem_tests::Backend::Memory {
        executed(by(&w.idem, "handle", Some((&other.idem, ErrorKind::InProgress)))).await;
    }
    executed(by(&w.idem, "x", None)).await;
    executed(by(&elsewhere.idem, "x", None)).await;
}
