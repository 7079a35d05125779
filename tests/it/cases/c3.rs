//! The library holds no connection that a body needs: the application's pool is the body's alone.

use std::time::{Duration, Instant};

use idem_runtime::{Error, idempotent, record::Status};
use idem_tests::Backend;
use sqlx::Transaction;
use tokio::{task::JoinSet, time::sleep};

use super::{
    call::{Fault, executed, failed},
    gate::Gate,
    pool::Pool,
    site::{Site, Worker},
};
use crate::transact::{
    dialect::Dialect,
    stage::{Stage, plays, put},
};

#[idempotent(key = "c3:<id>", stale_after = "1s", idem = w.idem)]
async fn two_queries(w: &Worker, id: u32, pool: &Pool) -> Result<i64, Error> {
    w.effect("ran");
    let first = pool.number("SELECT 1").await;
    sleep(Duration::from_millis(200)).await;
    Ok(first + pool.number("SELECT 1").await)
}

/// As many jobs at once as the pool has connections, and three times as many, heartbeats and all.
async fn all_end(site: &Site, connections: u32) {
    let w = site.worker().await;
    let pool = Pool::of(site, connections).await;
    let began = Instant::now();
    for jobs in [connections, 3 * connections] {
        let mut running = JoinSet::new();
        for id in 0..jobs {
            let (w, pool) = (w.clone(), pool.clone());
            running.spawn(async move { executed(two_queries(&w, 100 * jobs + id, &pool)).await });
        }
        assert!(running.join_all().await.into_iter().all(|sum| sum == 2));
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(site.effects("ran"), 4 * usize::try_from(connections).expect("small"));
    let (open, idle) = pool.connections();
    assert_eq!((open, u32::try_from(idle).expect("small")), (open, open), "all connections are back");
    assert!(open <= connections);
}

pub(super) async fn c3_jobs_share_a_pool_of_one(site: &Site) {
    all_end(site, 1).await;
}

pub(super) async fn c3_jobs_share_a_pool_of_four(site: &Site) {
    all_end(site, 4).await;
}

#[idempotent(key = "c3-all:<id>", stale_after = "1s", idem = w.idem)]
async fn takes_all(w: &Worker, id: u32, pool: &Pool, gate: &Gate) -> Result<u32, Error> {
    w.effect("all");
    pool.with_connection(async || gate.pass().await).await;
    Ok(id)
}

/// The body has the only connection of the pool; claims, heartbeats and completions go on without.
pub(super) async fn c3_a_body_may_hold_the_whole_pool(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let pool = Pool::of(site, 1).await;
    let running = tokio::spawn({
        let (w, pool, gate) = (w.clone(), pool.clone(), gate.clone());
        async move { executed(takes_all(&w, 1, &pool, &gate)).await }
    });
    gate.arrived().await;
    let claimed = w.row("c3-all:1").await.lease_until;
    w.row_such_that("c3-all:1", "renewed", |row| row.lease_until > claimed).await;
    if site.backend() != Backend::Sqlite {
        assert_eq!(site.idle_transactions().await, 0, "nothing is held while a body runs");
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), 1);
}

#[idempotent(key = "c3-busy:<id>", stale_after = "1s", idem = w.idem)]
async fn completes_late(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("late");
    gate.pass().await;
    Ok(id)
}

/// A database that is busy when the job is done is asked again; the job has not failed.
pub(super) async fn c3_a_completion_waits_for_a_busy_database(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(completes_late(&w, 1, &gate)).await }
    });
    gate.arrived().await;
    let mut hand = site.connection().await;
    if site.backend() == Backend::Sqlite {
        hand.execute("BEGIN IMMEDIATE").await;
    } else {
        hand.execute("BEGIN; SELECT 1 FROM idempotency_keys WHERE \"key\" = 'c3-busy:1' FOR UPDATE").await;
    }
    gate.open();
    // Longer than its lease: nobody can take it over while the row is held.
    sleep(Duration::from_millis(1_500)).await;
    assert!(!running.is_finished());
    hand.execute("ROLLBACK").await;
    assert_eq!(running.await.expect("no panic"), 1);
    assert_eq!(w.row("c3-busy:1").await.status, Status::Completed);
    assert_eq!(site.effects("late"), 1);
}

/// A body's own time-out of its own pool is the body's own error.
#[idempotent(key = "c3-starved:<id>", on_error = "release", idem = w.idem)]
async fn starves(w: &Worker, id: u32, pool: &Pool) -> Result<u32, Fault> {
    w.effect("starved");
    let outcome = pool.try_number("SELECT 1").await;
    outcome.map(|_| id).map_err(|error| Fault::own(&error.to_string()))
}

pub(super) async fn c3_a_time_out_of_the_pool_is_the_bodys_own_error(site: &Site) {
    let w = site.worker().await;
    let pool = Pool::of(site, 1).await;
    let error = pool.with_connection(async || failed(starves(&w, 1, &pool)).await).await;
    assert!(matches!(&error, Fault::Own(text) if text.contains("timed out")), "{error}");
    assert_eq!(w.row("c3-starved:1").await.status, Status::Released);
    assert_eq!(executed(starves(&w, 1, &pool)).await, 1);
}

/// Its own transaction has the only connection, and it asks for another.
#[idempotent(key = "c3-inside:<id>", mode = "transactional", idem = w.idem)]
async fn asks_the_pool<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    pool: &sqlx::Pool<DB>,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    pool.acquire().await?;
    Ok(())
}

async fn inside<DB: Dialect>(stage: &Stage<'_, DB>) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let mut tx = DB::begin(&pool).await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    let error = failed(asks_the_pool(&stage.w, &mut tx, "x", &pool)).await;
    assert!(matches!(&error, Fault::Own(text) if text.contains("timed out")), "{error}");
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    stage.lacks("c3-inside:x", "x").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

pub(super) async fn c3_a_transactional_body_that_asks_the_pool_is_rolled_back(site: &Site) {
    plays!(site, inside);
}
