//! Transactions that end under the job.

use std::time::Duration;

use idem_runtime::{ErrorKind, idempotent};
use idem_tests::{Backend, Proxy};
use sqlx::{Connection as _, Pool, Transaction};

use super::{
    cancel::{Moment, until},
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

#[idempotent(key = "cut:<id>", mode = "transactional", idem = w.idem)]
async fn cut<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    killer: &mut DB::Connection,
    at: Cut,
    succeeds: bool,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    ends_it::<DB>(killer, DB::number(tx, DB::NUMBER).await?).await;
    if at == Cut::InTheBody {
        put::<DB>(tx, id).await.expect_err("the connection is gone");
    }
    if succeeds { Ok(()) } else { Err(Fault::own("its own error")) }
}

/// Ends a connection from outside.
async fn ends_it<DB: Dialect>(killer: &mut DB::Connection, number: i64) {
    DB::run(killer, &DB::END.replace("{}", &number.to_string())).await.expect("its end");
}

pub(super) async fn a_connection_that_ends_under_the_job_is_no_success<DB: Dialect>(stage: &Stage<'_, DB>) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let mut killer = stage.connection().await;
    for at in [Cut::InTheBody, Cut::BehindTheBody] {
        for succeeds in [true, false] {
            let id = format!("{at:?}-{succeeds}");
            let mut tx = DB::begin(&pool).await;
            put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
            let call = cut(&stage.w, &mut tx, &id, &mut killer, at, succeeds);
            refused(ErrorKind::TransactionLost, call).await;
            tx.commit().await.expect_err("the connection is gone");
            stage.lacks(&format!("cut:{id}"), &id).await;
            assert_eq!(stage.rows(format!("before {id}")).await, 0);

            let mut tx = DB::begin(&pool).await;
            executed(job(&stage.w, &mut tx, &id)).await;
            tx.commit().await.expect("a commit");
        }
    }
}

/// The connection is cut between any two polls of the call, with what is under way. The call tells, and so does the
/// commit of whoever goes on all the same; but for one moment on Postgres, where sqlx itself has taken the transaction
/// for rolled back, and finds nothing to commit.
pub(super) async fn a_connection_that_ends_anywhere_is_told<DB: Dialect>(stage: &Stage<'_, DB>) {
    let proxy = Proxy::to(stage.site.database.address().expect("a server"));
    let url = stage.site.database.url_through(proxy.address()).expect("a server");
    let mut silent = 0;
    for polls in 0.. {
        let id = format!("{polls}");
        let mut connection = DB::connect(&url).await;
        let mut tx = DB::begin_on(&mut connection).await;
        put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
        proxy.delay(Duration::from_millis(1));
        let mut call = Box::pin(job(&stage.w, &mut tx, &id));
        let ended = until(Moment { polls, woken: false }, &mut call).await.is_some();
        proxy.cut();
        if ended {
            drop(call);
        } else {
            refused_in_the_end(call).await;
        }
        silent += usize::from(tx.commit().await.is_ok());
        stage.lacks(&format!("job:{id}"), &id).await;
        assert_eq!(stage.rows(format!("before {id}")).await, 0);
        proxy.forward();
        if ended {
            break;
        }
    }
    assert!(silent <= usize::from(DB::BACKEND == Backend::Postgres), "{silent} commits of nothing");
}

async fn refused_in_the_end(call: impl Future<Output = Result<String, Fault>>) {
    let error = call.await.expect_err("the connection is gone").idem();
    assert_eq!(error.kind(), ErrorKind::TransactionLost, "{error}");
    assert!(error.is_retryable());
}
