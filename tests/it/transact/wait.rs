//! Keys that another transaction is about to write.

use std::time::{Duration, Instant};

use idem_runtime::{ErrorKind, idempotent};
use sqlx::{Postgres, Transaction};
use tokio::{task::JoinSet, time::sleep};

use super::{
    dialect::Dialect,
    jobs::{job, recorded},
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, failed, refused, replayed},
    site::Worker,
};

/// A second delivery comes while the first one's claim is not committed; the first one ends as told. What the second
/// one did.
async fn second<DB: Dialect>(stage: &Stage<'_, DB>, commits: bool) {
    let mut first = stage.begin().await;
    executed(job(&stage.w, &mut first, "x")).await;
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let second = tokio::spawn({
        let (w, pool) = (stage.w.clone(), pool.clone());
        async move {
            let mut second = DB::begin(&pool).await;
            put::<DB>(&mut second, "second").await.expect("a row");
            let call = job(&w, &mut second, "x");
            let value = if commits { replayed(call).await } else { executed(call).await };
            second.commit().await.expect("a commit");
            value
        }
    });
    waiting(stage, 1).await;
    assert!(!second.is_finished(), "nobody knows yet");
    if commits {
        first.commit().await.expect("a commit");
    } else {
        first.rollback().await.expect("a rollback");
    }
    assert_eq!(second.await.expect("no panic"), "did x");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.rows("second").await, 1);
    assert_eq!(stage.w.effects("x"), if commits { 1 } else { 2 });
}

/// Until so many transactions wait for a lock. A database without a server tells nobody; there they have had time.
pub(super) async fn waiting<DB: Dialect>(stage: &Stage<'_, DB>, transactions: i64) {
    let Some(waiting) = DB::WAITING else { return sleep(Duration::from_millis(100)).await };
    let patience = Instant::now() + Duration::from_secs(30);
    let mut connection = stage.connection().await;
    while DB::number(&mut connection, waiting).await.expect("a count") < transactions {
        assert!(Instant::now() < patience, "nobody waits");
        sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn a_second_call_waits_and_replays_when_the_first_one_is_committed<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    second(stage, true).await;
}

pub(super) async fn a_second_call_waits_and_runs_when_the_first_one_is_rolled_back<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    second(stage, false).await;
}

pub(super) async fn of_32_callers_one_runs<DB: Dialect>(stage: &Stage<'_, DB>) {
    let url = stage.site.database.url().to_owned();
    let mut callers = JoinSet::new();
    for _ in 0..32 {
        let (w, url) = (stage.w.clone(), url.clone());
        callers.spawn(async move {
            let mut connection = DB::connect(&url).await;
            let mut tx = DB::begin_on(&mut connection).await;
            let value = job(&w, &mut tx, "x").await.expect("its value");
            tx.commit().await.expect("a commit");
            value
        });
    }
    assert!(callers.join_all().await.into_iter().all(|value| value == "did x"));
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

#[idempotent(key = "brief:<id>", mode = "transactional", on_busy = "wait", wait_for = "1s", idem = w.idem)]
async fn brief<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok(())
}

#[idempotent(key = "rash:<id>", mode = "transactional", on_busy = "error", idem = w.idem)]
pub(super) async fn rash<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok(())
}

macro_rules! is_bounded {
    ($stage:ident, $job:ident, $within:expr) => {{
        let (mut first, mut second) = ($stage.begin().await, $stage.begin().await);
        executed($job(&$stage.w, &mut first, "x")).await;
        put::<DB>(&mut second, "before").await.expect("a row");
        let began = Instant::now();
        let error = refused(ErrorKind::InProgress, $job(&$stage.w, &mut second, "x")).await.idem();
        assert!($within.contains(&began.elapsed()), "{:?}", began.elapsed());
        assert!(error.is_retryable() && error.retry_after().is_some());
        put::<DB>(&mut second, "after").await.expect("a row");
        first.commit().await.expect("a commit");
        replayed($job(&$stage.w, &mut second, "x")).await;
        second.commit().await.expect("a commit");
        $stage.holds(concat!(stringify!($job), ":x"), "x").await;
        assert_eq!(($stage.rows("before").await, $stage.rows("after").await), (1, 1));
        assert_eq!($stage.w.effects("x"), 1);
    }};
}

pub(super) async fn a_wait_is_bounded<DB: Dialect>(stage: &Stage<'_, DB>) {
    is_bounded!(stage, brief, (Duration::from_millis(950)..Duration::from_secs(8)));
}

pub(super) async fn a_call_that_does_not_wait_is_refused_at_once<DB: Dialect>(stage: &Stage<'_, DB>) {
    is_bounded!(stage, rash, (Duration::ZERO..Duration::from_secs(5)));
}

/// The limit of waits for locks, as the body finds it.
#[idempotent(key = "limited:<id>", mode = "transactional", replay = false, idem = w.idem)]
async fn limited(w: &Worker, tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<String, Fault> {
    w.effect(id);
    Ok(Postgres::text(tx, "SHOW lock_timeout").await?)
}

pub(super) async fn the_callers_own_limit_of_waits_stays(stage: &Stage<'_, Postgres>) {
    stage.stands("job:reviewed", "status", "'needs_review'").await;
    for (setting, shown) in [("SET", "1234ms"), ("SET LOCAL", "7s"), ("SET", "0")] {
        let mut connection = stage.connection().await;
        let mut first = stage.begin().await;
        executed(brief(&stage.w, &mut first, "held")).await;

        let set = format!("{setting} lock_timeout = '{shown}'");
        if setting == "SET" {
            Postgres::run(&mut connection, &set).await.expect("a setting");
        }
        let mut tx = Postgres::begin_on(&mut connection).await;
        Postgres::run(&mut tx, &set).await.expect("a setting");
        macro_rules! stays {
            () => {
                assert_eq!(Postgres::text(&mut tx, "SHOW lock_timeout").await.expect("a limit"), shown);
            };
        }
        assert_eq!(executed(limited(&stage.w, &mut tx, shown)).await, shown, "as the body sees it");
        stays!();
        executed(job(&stage.w, &mut tx, shown)).await;
        stays!();
        replayed(job(&stage.w, &mut tx, shown)).await;
        stays!();
        failed(recorded(&stage.w, &mut tx, shown)).await;
        stays!();
        refused(ErrorKind::NeedsReview, job(&stage.w, &mut tx, "reviewed")).await;
        stays!();
        refused(ErrorKind::InProgress, brief(&stage.w, &mut tx, "held")).await;
        stays!();
        tx.commit().await.expect("a commit");
        if setting == "SET" {
            assert_eq!(Postgres::text(&mut connection, "SHOW lock_timeout").await.expect("a limit"), shown);
        }
    }
}
