//! Transactions that the database only lets be tried again as a whole.

use std::sync::Arc;

use idem_runtime::{ErrorKind, idempotent};
use sqlx::{Connection as _, MySql, MySqlConnection, Postgres, Sqlite, Transaction};
use tokio::{
    sync::Barrier,
    task::JoinSet,
    time::{Duration, sleep, timeout},
};

use super::{
    dialect::Dialect,
    jobs::job,
    stage::{Stage, put},
    wait::{rash, waiting},
};
use crate::cases::{
    call::{Fault, executed, refused, replayed},
    site::Worker,
};

const LEVELS: [&str; 2] = ["BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE"];

pub(super) async fn the_loser_of_a_race_begins_again(stage: &Stage<'_, Postgres>) {
    for (n, level) in LEVELS.into_iter().enumerate() {
        let id = format!("x{n}");
        let mut loser = stage.pool.begin_with(level).await.expect("a transaction");
        put::<Postgres>(&mut loser, format!("snapshot {n}")).await.expect("a row");
        let mut winner = stage.begin().await;
        executed(job(&stage.w, &mut winner, &id)).await;
        winner.commit().await.expect("a commit");

        let error = refused(ErrorKind::TransactionConflict, job(&stage.w, &mut loser, &id)).await.idem();
        assert!(error.is_retryable() && error.to_string().contains("begin again"), "{error}");
        loser.rollback().await.expect("a rollback");
        let mut again = stage.pool.begin_with(level).await.expect("a transaction");
        replayed(job(&stage.w, &mut again, &id)).await;
        again.commit().await.expect("a commit");
        stage.holds(&format!("job:{id}"), &id).await;
        assert_eq!(stage.rows(format!("snapshot {n}")).await, 0);
    }
}

/// Reads what all of them write.
#[idempotent(key = "counting:<id>", mode = "transactional", idem = w.idem)]
async fn counting(w: &Worker, tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<(), Fault> {
    let there = Postgres::number(tx, &format!("SELECT count(*) FROM effects WHERE what = '{id}'")).await?;
    put::<Postgres>(tx, id).await?;
    w.effect(&format!("{there} before"));
    Ok(())
}

async fn delivers(w: &Worker, pool: &sqlx::PgPool, level: &'static str, id: &str) {
    loop {
        let mut tx = pool.begin_with(level).await.expect("a transaction");
        match counting(w, &mut tx, id).await {
            Ok(()) => match tx.commit().await {
                Ok(()) => return,
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40001") => {}
                Err(error) => panic!("{error}"),
            },
            Err(Fault::Idem(error)) => assert_eq!(error.kind(), ErrorKind::TransactionConflict, "{error}"),
            Err(Fault::Own(error)) => assert!(error.contains("serialize"), "{error}"),
        }
    }
}

pub(super) async fn workers_who_begin_again_have_one_effect_for_each_key(stage: &Stage<'_, Postgres>) {
    let pool = Postgres::pool(stage.site.database.url(), 20).await;
    for (n, level) in LEVELS.into_iter().enumerate() {
        let mut workers = JoinSet::new();
        for worker in 0..20 {
            let (w, pool) = (stage.w.clone(), pool.clone());
            workers.spawn(async move {
                for step in 0..50 {
                    delivers(&w, &pool, level, &format!("{n}-{}", (step * 7 + worker) % 50)).await;
                }
            });
        }
        workers.join_all().await;
        let rows = stage.number(&format!("SELECT count(*) FROM effects WHERE what LIKE '{n}-%'")).await;
        let names = format!("SELECT count(DISTINCT what) FROM effects WHERE what LIKE '{n}-%'");
        assert_eq!((rows, stage.number(&names).await), (50, 50));
    }
    assert_eq!(stage.number("SELECT count(*) FROM idempotency_keys WHERE status <> 'completed'").await, 0);
}

/// Two that want each other's keys. On MySQL the loser's transaction is gone, on Postgres it can be used on.
pub(super) async fn a_deadlock_of_two_transactions_costs_one_of_them<DB: Dialect>(stage: &Stage<'_, DB>) {
    let there = Arc::new(Barrier::new(2));
    let mut callers = JoinSet::new();
    for (first, second) in [("a", "b"), ("b", "a")] {
        let (w, pool, there) = (stage.w.clone(), stage.pool.clone(), Arc::clone(&there));
        callers.spawn(async move {
            let mut tx = DB::begin(&pool).await;
            put::<DB>(&mut tx, "caller").await.expect("a row");
            executed(job(&w, &mut tx, first)).await;
            there.wait().await;
            match job(&w, &mut tx, second).await {
                Ok(_) => {
                    tx.commit().await.expect("a commit");
                    true
                }
                Err(error) => {
                    let error = error.idem();
                    assert!(error.is_retryable());
                    if error.kind() == ErrorKind::TransactionConflict {
                        put::<DB>(&mut tx, "usable").await.expect("a row");
                        tx.rollback().await.expect("a rollback");
                    } else {
                        assert_eq!(error.kind(), ErrorKind::TransactionLost);
                    }
                    false
                }
            }
        });
    }
    let mut ended = callers.join_all().await;
    ended.sort_unstable();
    assert_eq!(ended, [false, true], "one of them begins again");
    stage.holds("job:a", "a").await;
    stage.holds("job:b", "b").await;
    assert_eq!(stage.rows("caller").await, 1);
}

/// What a plain read of the transaction does not see yet.
pub(super) async fn a_caller_with_an_old_snapshot_replays_what_was_done_since(stage: &Stage<'_, MySql>) {
    let mut late = stage.begin().await;
    let there = "SELECT count(*) FROM idempotency_keys";
    assert_eq!(MySql::number(&mut late, there).await.expect("a count"), 0);
    let mut other = stage.begin().await;
    executed(job(&stage.w, &mut other, "x")).await;
    other.commit().await.expect("a commit");

    assert_eq!(MySql::number(&mut late, there).await.expect("a count"), 0, "as it was");
    assert_eq!(replayed(job(&stage.w, &mut late, "x")).await, "did x");
    late.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

const LEVELS_OF_MYSQL: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Two connections whose transactions are of a level.
async fn at_level(stage: &Stage<'_, MySql>, level: &str) -> (MySqlConnection, MySqlConnection) {
    let mut connections = (stage.connection().await, stage.connection().await);
    for connection in [&mut connections.0, &mut connections.1] {
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        MySql::run(connection, &set).await.expect("a setting");
    }
    connections
}

/// At no level does a second call take what is not committed for done.
pub(super) async fn what_is_not_committed_is_no_answer(stage: &Stage<'_, MySql>) {
    for (n, level) in LEVELS_OF_MYSQL.into_iter().enumerate() {
        let id = format!("x{n}");
        let (mut first, mut second) = at_level(stage, level).await;
        let mut holder = MySql::begin_on(&mut first).await;
        executed(job(&stage.w, &mut holder, &id)).await;
        let second = tokio::spawn({
            let (w, id) = (stage.w.clone(), id.clone());
            async move {
                let mut tx = MySql::begin_on(&mut second).await;
                executed(job(&w, &mut tx, &id)).await;
                tx.commit().await.expect("a commit");
            }
        });
        waiting(stage, 1).await;
        holder.rollback().await.expect("a rollback");
        second.await.expect(level);
        stage.holds(&format!("job:{id}"), &id).await;
    }
}

/// At no level does a call wait for another one that was told not to.
pub(super) async fn a_call_waits_as_it_is_told_at_each_level(stage: &Stage<'_, MySql>) {
    for (n, level) in LEVELS_OF_MYSQL.into_iter().enumerate() {
        let id = format!("x{n}");
        let (mut first, mut second) = at_level(stage, level).await;
        let mut holder = MySql::begin_on(&mut first).await;
        executed(rash(&stage.w, &mut holder, &id)).await;
        let mut tx = MySql::begin_on(&mut second).await;
        let call = timeout(Duration::from_secs(20), rash(&stage.w, &mut tx, &id));
        refused(ErrorKind::InProgress, async { call.await.expect(level) }).await;
        holder.commit().await.expect("a commit");
        replayed(rash(&stage.w, &mut tx, &id)).await;
        tx.commit().await.expect("a commit");
        stage.holds(&format!("rash:{id}"), &id).await;
    }
}

/// A repeat holds nothing against others, and those that come at once are not in each other's way.
pub(super) async fn repeats_lock_nothing_at_each_level(stage: &Stage<'_, MySql>) {
    for (n, level) in LEVELS_OF_MYSQL.into_iter().enumerate() {
        let id = format!("x{n}");
        let mut callers = JoinSet::new();
        let there = Arc::new(Barrier::new(8));
        for _ in 0..4 {
            let connections = at_level(stage, level).await;
            for mut connection in [connections.0, connections.1] {
                let (w, id, there) = (stage.w.clone(), id.clone(), Arc::clone(&there));
                callers.spawn(async move {
                    let mut tx = MySql::begin_on(&mut connection).await;
                    there.wait().await;
                    job(&w, &mut tx, &id).await.expect("its value");
                    tx.commit().await.expect("a commit");
                });
            }
        }
        callers.join_all().await;
        stage.holds(&format!("job:{id}"), &id).await;
        assert_eq!(stage.w.effects(&id), 1, "{level}");

        let (mut first, _) = at_level(stage, level).await;
        let mut tx = MySql::begin_on(&mut first).await;
        replayed(job(&stage.w, &mut tx, &id)).await;
        let touch = "SET SESSION innodb_lock_wait_timeout = 1; UPDATE idempotency_keys SET worker = 'a'";
        stage.execute(&format!("{touch} WHERE `key` = 'job:{id}'")).await;
        tx.commit().await.expect("a commit");
    }
}

/// A transaction that has read what another one has changed since cannot come to write.
pub(super) async fn a_transaction_that_began_by_reading_begins_again(stage: &Stage<'_, Sqlite>) {
    let mut late = stage.pool.begin().await.expect("a transaction");
    let seen = Sqlite::number(&mut late, "SELECT count(*) FROM effects").await;
    assert_eq!(seen.expect("a count"), 0);
    let mut other = stage.begin().await;
    executed(job(&stage.w, &mut other, "y")).await;
    other.commit().await.expect("a commit");

    let error = refused(ErrorKind::TransactionConflict, job(&stage.w, &mut late, "x")).await.idem();
    assert!(error.is_retryable());
    assert_eq!(Sqlite::number(&mut late, "SELECT count(*) FROM effects").await.expect("it can read on"), 0);
    late.rollback().await.expect("a rollback");

    let mut again = stage.begin().await;
    executed(job(&stage.w, &mut again, "x")).await;
    again.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

/// One that did not read yet takes the lock with its claim.
pub(super) async fn a_deferred_transaction_waits_for_the_writer(stage: &Stage<'_, Sqlite>) {
    let mut first = stage.begin().await;
    executed(job(&stage.w, &mut first, "x")).await;
    let second = tokio::spawn({
        let (w, pool) = (stage.w.clone(), stage.pool.clone());
        async move {
            let mut tx = pool.begin().await.expect("a transaction");
            let value = replayed(job(&w, &mut tx, "x")).await;
            tx.commit().await.expect("a commit");
            value
        }
    });
    sleep(Duration::from_millis(100)).await;
    assert!(!second.is_finished(), "there is one writer");
    first.commit().await.expect("a commit");
    assert_eq!(second.await.expect("no panic"), "did x");
    stage.holds("job:x", "x").await;
}

/// A connection of the application that was there first, with a rollback journal.
pub(super) async fn a_connection_that_began_with_a_rollback_journal_serves(stage: &Stage<'_, Sqlite>) {
    let file = tempfile::TempDir::new().expect("a folder");
    let url = format!("sqlite://{}?mode=rwc", file.path().join("app.db").display());
    let mut connection = Sqlite::connect(&url).await;
    Sqlite::run(&mut connection, "PRAGMA journal_mode = DELETE").await.expect("a journal");
    Sqlite::run(&mut connection, "CREATE TABLE effects (what text)").await.expect("a table");
    let w = stage.site.worker_of(stage.elsewhere(&url).await);
    for id in ["x", "y"] {
        let mut tx = Sqlite::begin_on(&mut connection).await;
        executed(job(&w, &mut tx, id)).await;
        replayed(job(&w, &mut tx, id)).await;
        tx.commit().await.expect("a commit");
    }
    assert_eq!(Sqlite::number(&mut connection, "SELECT count(*) FROM effects").await.expect("a count"), 2);
    connection.close().await.expect("closed");
}
