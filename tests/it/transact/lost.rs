//! Transactions that end under the job.

use idem_runtime::{ErrorKind, idempotent};
use sqlx::{Connection as _, Pool, Postgres, Transaction};

use super::{
    dialect::Dialect,
    jobs::job,
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, refused},
    site::Worker,
};

/// Ends the transaction by hand, between two rows of its own.
#[idempotent(key = "ending:<id>", mode = "transactional", idem = w.idem)]
async fn ending<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    sql: &str,
    succeeds: bool,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    DB::run(tx, sql).await?;
    if succeeds { Ok(()) } else { Err(Fault::own("its own error")) }
}

/// The body ended its caller's transaction. Whoever commits all the same is told, and the connection is of use again,
/// or closed.
async fn ends<DB: Dialect>(stage: &Stage<'_, DB>, pool: &Pool<DB>, id: &str, sql: &str, succeeds: bool) {
    let mut tx = DB::begin(pool).await;
    put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
    refused(ErrorKind::TransactionLost, ending(&stage.w, &mut tx, id, sql, succeeds)).await;
    tx.commit().await.expect_err("there is nothing to commit");

    let mut tx = DB::begin(pool).await;
    executed(job(&stage.w, &mut tx, &format!("next-{id}"))).await;
    tx.commit().await.expect("a commit");
    stage.holds(&format!("job:next-{id}"), &format!("next-{id}")).await;
}

pub(super) async fn a_body_that_rolls_back_by_hand_is_no_success<DB: Dialect>(stage: &Stage<'_, DB>) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    for succeeds in [true, false] {
        let id = format!("{succeeds}");
        ends(stage, &pool, &id, "ROLLBACK", succeeds).await;
        stage.lacks(&format!("ending:{id}"), &id).await;
        assert_eq!(stage.rows(format!("before {id}")).await, 0);
    }
}

/// What it committed is there, with its key: as a claim that a person has to look at, or completed.
pub(super) async fn a_body_that_commits_by_hand_keeps_rows_and_key_together<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    for succeeds in [true, false] {
        let id = format!("{succeeds}");
        ends(stage, &pool, &id, "COMMIT", succeeds).await;
        let there = (stage.rows(&id).await, stage.status(&format!("ending:{id}")).await);
        let status = if succeeds { "completed" } else { "processing" };
        assert_eq!(there, (1, Some(status.to_owned())));
    }
}

pub(super) async fn a_body_that_begins_another_transaction_by_hand_is_no_success<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    for succeeds in [true, false] {
        let id = format!("{succeeds}");
        let mut tx = DB::begin(&pool).await;
        put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
        refused(ErrorKind::TransactionLost, ending(&stage.w, &mut tx, &id, "ROLLBACK; BEGIN", succeeds))
            .await;
        drop(tx);
        pool.acquire().await.expect("a connection").ping().await.expect("a sound connection");
        stage.lacks(&format!("ending:{id}"), &id).await;
        assert_eq!(stage.rows(format!("before {id}")).await, 0);
    }
}

/// Begins a transaction inside of its own and leaves it open.
#[idempotent(key = "forgetful:<id>", mode = "transactional", idem = w.idem)]
async fn forgetful<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    succeeds: bool,
) -> Result<(), Fault> {
    w.effect(id);
    let mut inner = sqlx::Connection::begin(&mut **tx).await?;
    put::<DB>(&mut inner, id).await?;
    std::mem::forget(inner);
    if succeeds { Ok(()) } else { Err(Fault::own("its own error")) }
}

pub(super) async fn a_body_that_leaves_a_transaction_open_undoes_itself<DB: Dialect>(stage: &Stage<'_, DB>) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let mut tx = DB::begin(&pool).await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    refused(ErrorKind::TransactionLost, forgetful(&stage.w, &mut tx, "x", true)).await;
    forgetful(&stage.w, &mut tx, "y", false).await.expect_err("its own error");
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    stage.lacks("forgetful:x", "x").await;
    stage.lacks("forgetful:y", "y").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

/// When the connection of a transaction is cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    InTheBody,
    BehindTheBody,
}

async fn terminate(killer: &mut sqlx::PgConnection, pid: i64) {
    Postgres::run(killer, &format!("SELECT pg_terminate_backend({pid}, 10000)")).await.expect("its end");
}

#[idempotent(key = "cut:<id>", mode = "transactional", idem = w.idem)]
async fn cut(
    w: &Worker,
    tx: &mut Transaction<'_, Postgres>,
    id: &str,
    killer: &mut sqlx::PgConnection,
    at: Cut,
    succeeds: bool,
) -> Result<(), Fault> {
    w.effect(id);
    put::<Postgres>(tx, id).await?;
    terminate(killer, Postgres::number(tx, "SELECT pg_backend_pid()::bigint").await?).await;
    if at == Cut::InTheBody {
        put::<Postgres>(tx, id).await.expect_err("the connection is gone");
    }
    if succeeds { Ok(()) } else { Err(Fault::own("its own error")) }
}

pub(super) async fn a_connection_that_ends_under_the_job_is_no_success(stage: &Stage<'_, Postgres>) {
    let pool = Postgres::pool(stage.site.database.url(), 1).await;
    let mut killer = stage.connection().await;
    for at in [Cut::InTheBody, Cut::BehindTheBody] {
        for succeeds in [true, false] {
            let id = format!("{at:?}-{succeeds}");
            let mut tx = Postgres::begin(&pool).await;
            put::<Postgres>(&mut tx, format!("before {id}")).await.expect("a row");
            let call = cut(&stage.w, &mut tx, &id, &mut killer, at, succeeds);
            refused(ErrorKind::TransactionLost, call).await;
            tx.commit().await.expect_err("the connection is gone");
            stage.lacks(&format!("cut:{id}"), &id).await;
            assert_eq!(stage.rows(format!("before {id}")).await, 0);

            let mut tx = Postgres::begin(&pool).await;
            executed(job(&stage.w, &mut tx, &id)).await;
            tx.commit().await.expect("a commit");
        }
    }
}
