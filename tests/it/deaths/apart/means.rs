//! Other ways to die than by a signal, and one to live on with next to nothing.

use std::{env, hint::black_box, process, thread, time::Duration};

use idem_runtime::{Error, ErrorKind, idempotent, record::Status, with_outcome};
use idem_tests::{Backend, Child, child::Parent};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{sync::oneshot, time::sleep};

use crate::cases::{
    call::{refused, replayed},
    site::{Site, Worker},
};

const MEANS: &str = "IDEM_DEATHS_MEANS";

#[idempotent(key = "deaths-means:<means>", idem = w.idem)]
async fn dies(w: &Worker, means: &str) -> Result<u64, Error> {
    w.effect(means);
    match means {
        "abort" => process::abort(),
        "exit" => process::exit(0),
        _ => Ok(overflow(1)),
    }
}

#[expect(unconditional_recursion, reason = "the stack is to overflow")]
fn overflow(n: u64) -> u64 {
    let room = black_box([n; 512]);
    overflow(n + 1) + room[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn dies_by_itself() {
    let Some(_parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    let means = env::var(MEANS).expect("set by the parent");
    let _ = dies(&w, &means).await;
    panic!("it is not dead");
}

async fn is_a_death(site: &Site, means: &str) {
    let mut child = Child::spawn(site.child("deaths::apart::means::dies_by_itself").env(MEANS, means));
    let status = child.wait();
    assert_ne!(status.code(), Some(101), "{}", child.transcript());
    let (w, key) = (site.worker().await, format!("deaths-means:{means}"));
    refused(ErrorKind::InProgress, dies(&w, means)).await;
    site.set(&key, "lease_until = 1").await;
    refused(ErrorKind::NeedsReview, dies(&w, means)).await;
    assert_eq!((site.effects(means), w.row(&key).await.status), (1, Status::NeedsReview));
}

pub(super) async fn an_abort_is_a_death(site: &Site) {
    is_a_death(site, "abort").await;
}

pub(super) async fn an_exit_is_a_death(site: &Site) {
    is_a_death(site, "exit").await;
}

pub(super) async fn a_stack_that_overflows_is_a_death(site: &Site) {
    is_a_death(site, "overflow").await;
}

/// From here on until the parent says so, this process opens nothing more. Resolves when the parent has done what it
/// does.
async fn opens_nothing() {
    let parent = Parent::attach().expect("a parent");
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1), ..limits }).expect("a lower limit");
    let (ends, ended) = oneshot::channel();
    parent.say("starves");
    thread::spawn(move || {
        assert_eq!(parent.hear(), "end");
        ends.send(()).expect("a body that waits");
        assert_eq!(parent.hear(), "open");
        setrlimit(Resource::Nofile, limits).expect("the limit as it was");
    });
    ended.await.expect("a parent");
}

#[idempotent(key = "deaths-starves:<id>", idem = w.idem)]
async fn starves(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    if Parent::attach().is_some() {
        opens_nothing().await;
    }
    Ok(id.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn opens_no_more() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    let (result, outcome) = with_outcome(starves(&w, "x")).await;
    parent.say(&format!("ended {outcome:?} {result:?}"));
}

/// Ends every connection but the asker's own.
async fn end_connections(site: &Site) {
    let mut hand = site.connection().await;
    match site.backend() {
        Backend::Postgres => {
            let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            assert!(hand.number(end).await > 0);
        }
        Backend::Mysql => loop {
            let others =
                "FROM information_schema.processlist WHERE db = database() AND id <> connection_id()";
            if hand.number(&format!("SELECT count(*) {others}")).await == 0 {
                return;
            }
            let one = hand.number(&format!("SELECT CAST(min(id) AS SIGNED) {others}")).await;
            // One that has ended by itself since cannot be ended.
            let _ = hand.try_execute(&format!("KILL {one}")).await;
        },
        Backend::Memory | Backend::Sqlite => {}
    }
}

pub(super) async fn a_completion_without_a_file_descriptor_to_spare_is_recorded(site: &Site) {
    let mut child = Child::spawn(&mut site.child("deaths::apart::means::opens_no_more"));
    child.expect("starves");
    end_connections(site).await;
    child.say("end");
    if site.backend() != Backend::Sqlite {
        // Nothing can be recorded: its connections are gone, and it can open none.
        sleep(Duration::from_millis(300)).await;
        let status = "SELECT count(*) FROM idempotency_keys WHERE status = 'processing'";
        assert_eq!(site.number(status).await, 1);
    }
    child.say("open");
    assert_eq!(child.expect("ended"), "Some(Executed) Ok(\"x\")");
    let w = site.worker().await;
    assert_eq!(replayed(starves(&w, "x")).await, "x");
    assert_eq!(site.effects("x"), 1);
}
