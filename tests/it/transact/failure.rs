//! What a body leaves that fails: nothing of its own, and all of its caller's.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use idem_runtime::{Error, ErrorKind, OnError, current, idempotent, record::Status};
use serde::{Deserialize, Serialize, Serializer};
use sqlx::{Postgres, Transaction};

use super::{
    dialect::Dialect,
    jobs::{job, recorded},
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, failed, refused},
    gate::Gate,
    site::Worker,
};

macro_rules! failing {
    ($($name:ident: $key:literal, $on_error:expr;)+) => {$(
        #[idempotent(key = $key, mode = "transactional", on_error = $on_error, idem = w.idem)]
        async fn $name<DB: Dialect>(
            w: &Worker,
            tx: &mut Transaction<'_, DB>,
            id: &str,
        ) -> Result<(), Fault> {
            w.effect(id);
            put::<DB>(tx, id).await?;
            current().effect_starts();
            Err(Fault::own("not this time"))
        }
    )+};
}

fn held(_: &Fault) -> OnError {
    OnError::Hold
}

failing! {
    releasing: "releasing:<id>", "release";
    holding: "holding:<id>", "hold";
    marking: "marking:<id>", "by_mark";
    judging: "judging:<id>", held;
}

macro_rules! undoes {
    ($stage:ident, $job:ident) => {{
        let mut tx = $stage.begin().await;
        put::<DB>(&mut tx, "before").await.expect("a row");
        for _ in 0..2 {
            let error = failed($job(&$stage.w, &mut tx, "x")).await;
            assert_eq!(error.to_string(), "not this time");
        }
        put::<DB>(&mut tx, "after").await.expect("a row");
        tx.commit().await.expect("a commit");
        $stage.lacks(concat!(stringify!($job), ":x"), "x").await;
    }};
}

pub(super) async fn an_error_undoes_the_jobs_rows_and_leaves_the_callers<DB: Dialect>(stage: &Stage<'_, DB>) {
    undoes!(stage, releasing);
    undoes!(stage, holding);
    undoes!(stage, marking);
    undoes!(stage, judging);
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (4, 4));
    assert_eq!(stage.w.effects("x"), 8, "each delivery ran");
}

pub(super) async fn a_recorded_failure_lasts_if_the_caller_commits<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    failed(recorded(&stage.w, &mut tx, "x")).await;
    refused(ErrorKind::PreviouslyFailed, recorded(&stage.w, &mut tx, "x")).await;
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    assert_eq!(stage.rows("x").await, 0);
    let row = stage.w.row("recorded:x").await;
    assert_eq!((row.status, row.error.as_deref()), (Status::Failed, Some("it never will")));
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));

    let mut tx = stage.begin().await;
    let error = refused(ErrorKind::PreviouslyFailed, recorded(&stage.w, &mut tx, "x")).await.idem();
    assert!(error.to_string().contains("it never will"), "{error}");
    tx.rollback().await.expect("a rollback");
    assert_eq!(stage.w.effects("x"), 1);
}

pub(super) async fn a_recorded_failure_goes_with_the_callers_rollback<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    failed(recorded(&stage.w, &mut tx, "x")).await;
    tx.rollback().await.expect("a rollback");
    stage.lacks("recorded:x", "x").await;

    let mut tx = stage.begin().await;
    failed(recorded(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    assert_eq!(stage.status("recorded:x").await.as_deref(), Some("failed"));
    assert_eq!(stage.w.effects("x"), 2);
}

pub(super) async fn a_released_row_keeps_its_history<DB: Dialect>(stage: &Stage<'_, DB>) {
    for key in ["releasing:x", "job:x", "recorded:x"] {
        let columns = "status, owner, fence, attempt, error";
        stage.stands(key, columns, "'released', 'aa', 7, 3, 'then'").await;
    }
    let before = stage.w.row("releasing:x").await;
    let mut tx = stage.begin().await;
    failed(releasing(&stage.w, &mut tx, "x")).await;
    executed(job(&stage.w, &mut tx, "x")).await;
    failed(recorded(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");

    let row = stage.w.row("releasing:x").await;
    assert_eq!(row.version(), before.version());
    assert_eq!((row.attempt, row.error.as_deref()), (3, Some("then")));
    let row = stage.w.row("job:x").await;
    assert_eq!((row.status, row.attempt, row.error.as_deref()), (Status::Completed, 4, Some("then")));
    assert!(row.fence > 7);
    let row = stage.w.row("recorded:x").await;
    assert_eq!((row.status, row.attempt, row.error.as_deref()), (Status::Failed, 4, Some("it never will")));
}

/// Runs into a constraint, and hands that on or keeps it to itself.
#[idempotent(key = "colliding:<id>", mode = "transactional", idem = w.idem)]
async fn colliding<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    hands_on: bool,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    let collided = DB::run(tx, "INSERT INTO once VALUES (1)").await;
    if hands_on { collided.map(drop).map_err(Into::into) } else { Ok(()) }
}

async fn with_a_constraint<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.execute("CREATE TABLE once (id integer PRIMARY KEY)").await;
    stage.execute("INSERT INTO once VALUES (1)").await;
}

pub(super) async fn an_error_of_the_database_that_is_handed_on_leaves_the_transaction_whole<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    with_a_constraint(stage).await;
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    failed(colliding(&stage.w, &mut tx, "x", true)).await;
    put::<DB>(&mut tx, "after").await.expect("a row");
    executed(job(&stage.w, &mut tx, "y")).await;
    tx.commit().await.expect("a commit");
    stage.lacks("colliding:x", "x").await;
    stage.holds("job:y", "y").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

/// Where an error fails what was done before it, too, the body's `Ok` is not true.
pub(super) async fn an_error_of_the_database_that_is_kept_back_is_no_success(stage: &Stage<'_, Postgres>) {
    with_a_constraint(stage).await;
    let mut tx = stage.begin().await;
    put::<Postgres>(&mut tx, "before").await.expect("a row");
    refused(ErrorKind::TransactionLost, colliding(&stage.w, &mut tx, "x", false)).await;
    put::<Postgres>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    stage.lacks("colliding:x", "x").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

/// A failed transaction is no place to begin in.
pub(super) async fn a_transaction_that_has_failed_runs_nothing(stage: &Stage<'_, Postgres>) {
    let mut tx = stage.begin().await;
    Postgres::run(&mut tx, "SELECT 1 / 0").await.expect_err("a division by zero");
    refused(ErrorKind::TransactionLost, job(&stage.w, &mut tx, "x")).await;
    tx.rollback().await.expect("a rollback");
    assert_eq!(stage.w.effects("x"), 0);
    stage.lacks("job:x", "x").await;
}

/// What a panic leaves is caught where the caller would.
async fn caught<F: Future>(call: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut call = pin!(call);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[idempotent(key = "panicking:<id>", mode = "transactional", on_error = "record", idem = w.idem)]
async fn panicking<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    panic!("out of {id}")
}

pub(super) async fn a_panic_undoes_the_jobs_rows_and_reaches_the_caller<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    let panic = caught(panicking(&stage.w, &mut tx, "x")).await.expect_err("a panic");
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("out of x"));
    put::<DB>(&mut tx, "after").await.expect("a row");
    executed(job(&stage.w, &mut tx, "y")).await;
    tx.commit().await.expect("a commit");
    stage.lacks("panicking:x", "x").await;
    stage.holds("job:y", "y").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

#[derive(Debug, Deserialize)]
struct Explosive;

impl Serialize for Explosive {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("it cannot be written")
    }
}

#[idempotent(key = "explosive:<id>", mode = "transactional", idem = w.idem)]
async fn explosive<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<Explosive, Fault> {
    put::<DB>(tx, id).await?;
    w.effect(id);
    Ok(Explosive)
}

pub(super) async fn a_result_that_panics_when_it_is_stored_undoes_all<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    caught(explosive(&stage.w, &mut tx, "x")).await.expect_err("a panic");
    tx.commit().await.expect("a commit");
    stage.lacks("explosive:x", "x").await;
    assert_eq!(stage.rows("before").await, 1);
}

#[idempotent(key = "not-a-number:<id>", mode = "transactional", idem = w.idem)]
async fn not_a_number<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<f64, Error> {
    w.effect(id);
    put::<DB>(tx, id).await.expect("a row");
    Ok(f64::NAN)
}

pub(super) async fn a_result_that_cannot_be_stored_is_completed_without_it<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let mut tx = stage.begin().await;
    assert!(executed(not_a_number(&stage.w, &mut tx, "x")).await.is_nan());
    refused(ErrorKind::AlreadyCompleted, not_a_number(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("not-a-number:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

/// Fails for good once it is let through.
#[idempotent(key = "recorded-late:<id>", mode = "transactional", on_error = "record", idem = w.idem)]
async fn recorded_late(
    w: &Worker,
    tx: &mut Transaction<'_, Postgres>,
    id: &str,
    gate: &Gate,
) -> Result<String, Fault> {
    put::<Postgres>(tx, id).await?;
    gate.pass().await;
    Err(Fault::own("it never will"))
}

/// Whoever waited for the key has it as soon as the body is undone, before its failure is recorded.
pub(super) async fn a_failure_is_not_recorded_over_a_claim_that_came_since(stage: &Stage<'_, Postgres>) {
    for round in 0..10 {
        let id = format!("x{round}");
        let claim = format!(
            "INSERT INTO idempotency_keys (key) VALUES ('recorded-late:{id}') ON CONFLICT DO NOTHING"
        );
        let gate = Gate::new();
        let mut tx = stage.begin().await;
        let mut foreign = stage.connection().await;
        // The commit as well: where the failure is recorded first, whoever waits goes on waiting for it.
        let running = async {
            let failed = recorded_late(&stage.w, &mut tx, &id, &gate).await;
            tx.commit().await.expect("a commit");
            failed
        };
        let claiming = async {
            gate.arrived().await;
            let waiting = async {
                while stage.number("SELECT count(*) FROM pg_locks WHERE NOT granted").await == 0 {}
                gate.open();
            };
            tokio::join!(Postgres::run(&mut foreign, &claim), waiting).0.expect("an answer")
        };
        let (failed, claimed) = tokio::join!(running, claiming);
        failed.expect_err("the body's own error");
        let word = if claimed == 1 { "processing" } else { "failed" };
        assert_eq!(stage.status(&format!("recorded-late:{id}")).await.as_deref(), Some(word));
    }
}
