//! Transactions in transactions, and jobs in jobs.

use std::time::{Duration, Instant};

use idem_runtime::{ErrorKind, idempotent};
use sqlx::Transaction;

use super::{
    dialect::Dialect,
    jobs::{job, recorded},
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, failed, refused, replayed},
    site::Worker,
};

pub(super) async fn a_caller_may_be_inside_a_transaction_of_its_own<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "outer").await.expect("a row");
    let mut inner: Transaction<'_, DB> = sqlx::Connection::begin(&mut *tx).await.expect("a savepoint");
    put::<DB>(&mut inner, "inner").await.expect("a row");
    executed(job(&stage.w, &mut inner, "x")).await;
    failed(recorded(&stage.w, &mut inner, "y")).await;
    inner.rollback().await.expect("a rollback");

    let mut inner: Transaction<'_, DB> = sqlx::Connection::begin(&mut *tx).await.expect("a savepoint");
    executed(job(&stage.w, &mut inner, "z")).await;
    replayed(job(&stage.w, &mut inner, "z")).await;
    inner.commit().await.expect("a release");
    replayed(job(&stage.w, &mut tx, "z")).await;
    tx.commit().await.expect("a commit");

    stage.lacks("job:x", "x").await;
    stage.lacks("recorded:y", "y").await;
    stage.holds("job:z", "z").await;
    assert_eq!((stage.rows("outer").await, stage.rows("inner").await), (1, 0));
}

/// A job whose body runs another one in the same transaction.
#[idempotent(key = "around:<id>", mode = "transactional", idem = w.idem)]
async fn around<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    inner_fails: bool,
    fails: bool,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    if inner_fails {
        failed(recorded(w, tx, id)).await;
    } else {
        executed(job(w, tx, id)).await;
        replayed(job(w, tx, id)).await;
    }
    put::<DB>(tx, id).await?;
    if fails { Err(Fault::own("after all")) } else { Ok(()) }
}

pub(super) async fn a_job_may_run_another_in_its_own_transaction<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    executed(around(&stage.w, &mut tx, "a", false, false)).await;
    executed(around(&stage.w, &mut tx, "b", true, false)).await;
    failed(around(&stage.w, &mut tx, "c", false, true)).await;
    failed(around(&stage.w, &mut tx, "d", true, true)).await;
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");

    let mut seen = Vec::new();
    for id in ["a", "b", "c", "d"] {
        let inner = if id < "b" || id == "c" { format!("job:{id}") } else { format!("recorded:{id}") };
        let outer = stage.status(&format!("around:{id}")).await;
        seen.push((stage.rows(id).await, outer, stage.status(&inner).await));
    }
    let status = |word: &str| Some(word.to_owned());
    let right = [
        (3, status("completed"), status("completed")),
        (2, status("completed"), status("failed")),
        (0, None, None),
        (0, None, None),
    ];
    assert_eq!(seen, right);
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

/// A job that calls itself.
#[idempotent(key = "again:<id>", mode = "transactional", idem = w.idem)]
async fn again<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    deep: u32,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    if deep > 0 {
        let began = Instant::now();
        let call = Box::pin(again(w, tx, id, deep - 1));
        refused(ErrorKind::Reentered, call).await;
        assert!(began.elapsed() < Duration::from_secs(5), "before any wait");
    }
    Ok(())
}

pub(super) async fn a_key_is_not_entered_again_from_inside<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    executed(again(&stage.w, &mut tx, "x", 1)).await;
    tx.commit().await.expect("a commit");
    stage.holds("again:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

#[idempotent(key = "claimed-inside:<id>", idem = w.idem)]
async fn claimed_inside(w: &Worker, id: &str) -> Result<(), Fault> {
    w.effect(id);
    Ok(())
}

/// Runs a job of another mode in its body, which has connections of its own.
#[idempotent(key = "mixed:<id>", mode = "transactional", idem = w.idem)]
async fn mixed<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Fault> {
    put::<DB>(tx, id).await?;
    claimed_inside(w, id).await
}

pub(super) async fn a_job_of_another_mode_inside_commits_by_itself<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    executed(mixed(&stage.w, &mut tx, "x")).await;
    tx.rollback().await.expect("a rollback");
    stage.lacks("mixed:x", "x").await;
    assert_eq!(stage.status("claimed-inside:x").await.as_deref(), Some("completed"));

    let mut tx = stage.begin().await;
    executed(mixed(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("mixed:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

/// SQLite has one writer, and that is the caller.
pub(super) async fn a_job_of_another_mode_inside_is_refused_in_time<DB: Dialect>(stage: &Stage<'_, DB>) {
    let impatient = stage.site.worker_by(|builder| builder.store_timeout(Duration::from_millis(500))).await;
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    let began = Instant::now();
    let error = failed(mixed(&impatient, &mut tx, "x")).await.idem();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    stage.lacks("mixed:x", "x").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
    assert_eq!(stage.w.effects("x"), 0);
}
