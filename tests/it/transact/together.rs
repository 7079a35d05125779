//! The job's rows and its key appear together or not at all.

use std::env;

use idem_tests::{Child, child::Parent};
use sqlx::{Connection as _, MySql, Postgres, Sqlite, Transaction};

use super::{
    dialect::Dialect,
    jobs::{gated, job},
    stage::{Stage, put},
};
use crate::cases::{
    call::{executed, replayed},
    gate::Gate,
    site::{URL, Worker},
};

pub(super) async fn rows_and_key_appear_when_the_caller_commits<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    assert_eq!(executed(job(&stage.w, &mut tx, "x")).await, "did x");
    stage.lacks("job:x", "x").await;
    tx.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;

    let mut tx = stage.begin().await;
    assert_eq!(replayed(job(&stage.w, &mut tx, "x")).await, "did x");
    tx.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

/// However a transaction ends that is not committed, a later delivery runs.
async fn nothing_stays<DB: Dialect>(stage: &Stage<'_, DB>, end: impl AsyncFnOnce(Transaction<'static, DB>)) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "caller").await.expect("a row");
    executed(job(&stage.w, &mut tx, "x")).await;
    end(tx).await;
    // What is dropped is rolled back when its connection is used again.
    stage.pool.acquire().await.expect("a connection").ping().await.expect("a sound connection");
    stage.lacks("job:x", "x").await;
    assert_eq!(stage.rows("caller").await, 0);

    let mut tx = stage.begin().await;
    executed(job(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 2);
}

pub(super) async fn nothing_stays_when_the_caller_rolls_back<DB: Dialect>(stage: &Stage<'_, DB>) {
    nothing_stays(stage, async |tx| tx.rollback().await.expect("a rollback")).await;
}

pub(super) async fn nothing_stays_when_the_transaction_is_dropped<DB: Dialect>(stage: &Stage<'_, DB>) {
    nothing_stays(stage, async |tx| drop(tx)).await;
}

pub(super) async fn nothing_stays_when_the_connection_is_dropped<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut connection = stage.connection().await;
    let mut tx = DB::begin_on(&mut connection).await;
    executed(job(&stage.w, &mut tx, "x")).await;
    // Nobody tells the database that it is over: it finds the connection closed.
    std::mem::forget(tx);
    drop(connection);

    let mut tx = stage.begin().await;
    executed(job(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
}

pub(super) async fn many_jobs_of_one_transaction_appear_together<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    for n in 0..20 {
        executed(job(&stage.w, &mut tx, &format!("a{n}"))).await;
        replayed(job(&stage.w, &mut tx, &format!("a{n}"))).await;
    }
    tx.rollback().await.expect("a rollback");
    for n in 0..20 {
        stage.lacks(&format!("job:a{n}"), &format!("a{n}")).await;
    }

    let mut tx = stage.begin().await;
    for n in 0..20 {
        executed(job(&stage.w, &mut tx, &format!("a{n}"))).await;
    }
    tx.commit().await.expect("a commit");
    for n in 0..20 {
        stage.holds(&format!("job:a{n}"), &format!("a{n}")).await;
    }
}

const POINT: &str = "IDEM_TRANSACT_POINT";

#[tokio::test]
#[ignore = "the child of another test"]
async fn dying_worker() {
    let Some(parent) = Parent::attach() else { return };
    let url = env::var(URL).expect("set by the parent");
    match url.split(':').next() {
        Some("sqlite") => dies::<Sqlite>(&parent, &url).await,
        Some("mysql") => dies::<MySql>(&parent, &url).await,
        _ => dies::<Postgres>(&parent, &url).await,
    }
}

/// Goes to the point that the parent names, and waits there for its end.
async fn dies<DB: Dialect>(parent: &Parent, url: &str) {
    let w = Worker::of_parent().await;
    let mut connection = DB::connect(url).await;
    let mut tx = DB::begin_on(&mut connection).await;
    put::<DB>(&mut tx, "caller").await.expect("a row");
    let gate = Gate::new();
    let point = env::var(POINT).expect("set by the parent");
    if point == "in the body" {
        let mut call = Box::pin(gated(&w, &mut tx, "x", &gate));
        gate.stops(&mut call).await;
        parent.say("there");
        let _ = parent.hear();
    }
    gate.open();
    executed(gated(&w, &mut tx, "x", &gate)).await;
    if point == "after the commit" {
        tx.commit().await.expect("a commit");
    }
    parent.say("there");
    let _ = parent.hear();
}

/// A process is killed at a point of its first delivery. Then comes a second one.
async fn killed<DB: Dialect>(stage: &Stage<'_, DB>, point: &str) {
    let worker = concat!(module_path!(), "::dying_worker");
    let worker = worker.split_once("::").expect("a crate before it").1;
    let mut child = Child::spawn(stage.site.child(worker).env(POINT, point));
    child.expect("there");
    child.kill();
    let mut tx = stage.begin().await;
    let gate = Gate::new();
    gate.open();
    gated(&stage.w, &mut tx, "x", &gate).await.expect("its value");
    tx.commit().await.expect("a commit");
    stage.holds("gated:x", "x").await;
}

pub(super) async fn nothing_stays_of_a_process_that_dies_in_the_body<DB: Dialect>(stage: &Stage<'_, DB>) {
    killed(stage, "in the body").await;
    assert_eq!((stage.w.effects("x"), stage.rows("caller").await), (2, 0));
}

pub(super) async fn nothing_stays_of_a_process_that_dies_before_the_commit<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    killed(stage, "before the commit").await;
    assert_eq!((stage.w.effects("x"), stage.rows("caller").await), (2, 0));
}

pub(super) async fn a_process_that_dies_after_the_commit_leaves_a_replay<DB: Dialect>(stage: &Stage<'_, DB>) {
    killed(stage, "after the commit").await;
    assert_eq!((stage.w.effects("x"), stage.rows("caller").await), (1, 1));
}
