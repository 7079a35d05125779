//! Calls that are dropped half way, and what their caller's transaction is then.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use idem_runtime::{Error, idempotent};
use idem_tests::{Backend, Proxy};
use sqlx::{Pool, Postgres, Transaction};

use super::{
    dialect::Dialect,
    jobs::{gated, job, nesting, recorded},
    stage::{Stage, put},
    wait::waiting,
};
use crate::cases::{
    call::{Fault, executed, replayed},
    gate::Gate,
    site::Worker,
};

/// When a future is dropped: after so many polls, at once or when it would be polled again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) polls: usize,
    pub(super) woken: bool,
}

/// What a future came to, if it ended before that moment.
pub(super) async fn until<F: Future>(moment: Moment, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        if polls == moment.polls {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls == moment.polls && !moment.woken => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

type Call<'c> = Pin<Box<dyn Future<Output = Result<String, Fault>> + Send + 'c>>;

/// A call by the worker in a transaction, of a job with this id.
type Caller<DB> = for<'c> fn(&'c Worker, &'c mut Transaction<'static, DB>, &'c str) -> Call<'c>;

/// What is committed of a transaction in which a call was dropped.
#[derive(Debug, PartialEq)]
enum Left {
    /// The job's row and its key, and what the caller wrote before and after.
    All,
    /// What the caller wrote.
    Callers,
    /// Nothing, and the caller was told.
    Nothing,
}

/// Drops a call at every point; its caller goes on and commits. What is committed is whole: the caller's own rows, and
/// the job's row with its key or neither.
async fn dropped_everywhere<DB: Dialect>(
    stage: &Stage<'_, DB>,
    pool: &Pool<DB>,
    prefix: &str,
    call: Caller<DB>,
) -> Vec<Left> {
    let mut all = Vec::new();
    for woken in [false, true] {
        for polls in 0.. {
            assert!(polls < 1_000, "a call that ends");
            let id = format!("{prefix}-{polls}-{woken}");
            let mut tx = DB::begin(pool).await;
            put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
            let ended = until(Moment { polls, woken }, call(&stage.w, &mut tx, &id)).await.is_some();
            let goes_on = match polls % 2 {
                0 => put::<DB>(&mut tx, format!("after {id}")).await,
                _ => Ok(()),
            };
            let committed = match goes_on {
                Ok(()) => tx.commit().await.is_ok(),
                Err(_) => false,
            };
            let left = left(stage, prefix, &id).await;
            assert_eq!(committed, left != Left::Nothing, "after {polls} polls");
            let after = stage.rows(format!("after {id}")).await;
            assert_eq!(after, i64::from(committed && polls % 2 == 0), "after {polls} polls");
            all.push(left);
            if ended {
                break;
            }
        }
    }
    assert!(all.contains(&Left::All) && all.contains(&Left::Callers), "{all:?}");
    all
}

async fn left<DB: Dialect>(stage: &Stage<'_, DB>, prefix: &str, id: &str) -> Left {
    let key = stage.status(&format!("{prefix}:{id}")).await;
    let rows = stage.rows(id).await;
    match (stage.rows(format!("before {id}")).await, key.as_deref(), rows) {
        (1, Some("completed"), 1) | (1, Some("failed"), 0) => Left::All,
        (1, None, 0) => Left::Callers,
        (0, None, 0) => Left::Nothing,
        mixed => panic!("{id}: {mixed:?}"),
    }
}

pub(super) async fn a_call_that_is_dropped_anywhere_leaves_all_or_nothing<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let left = dropped_everywhere(stage, &pool, "job", |w, tx, id| Box::pin(job(w, tx, id))).await;
    assert!(!left.contains(&Left::Nothing), "{left:?}");
}

pub(super) async fn a_failing_call_that_is_dropped_anywhere_leaves_all_or_nothing<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let left = dropped_everywhere(stage, &pool, "recorded", |w, tx, id| Box::pin(recorded(w, tx, id))).await;
    assert!(!left.contains(&Left::Nothing), "{left:?}");
}

/// Over a network sqlx can fail the whole transaction where one inside of it is dropped while it is committed; then the
/// caller is told.
pub(super) async fn a_nesting_call_that_is_dropped_anywhere_leaves_all_or_nothing<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    let left = dropped_everywhere(stage, &pool, "nesting", |w, tx, id| Box::pin(nesting(w, tx, id))).await;
    assert!(DB::BACKEND != Backend::Sqlite || !left.contains(&Left::Nothing), "{left:?}");
    assert_eq!(stage.rows("undone").await, 0);
}

/// What is on its way over a slow network when it is dropped arrives later.
pub(super) async fn a_call_that_is_dropped_on_a_slow_network_leaves_all_or_nothing<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let proxy = Proxy::to(stage.site.database.address().expect("a server"));
    let url = stage.site.database.url_through(proxy.address()).expect("a server");
    let pool = DB::pool(&url, 1).await;
    proxy.delay(Duration::from_millis(2));
    let left = dropped_everywhere(stage, &pool, "job", |w, tx, id| Box::pin(job(w, tx, id))).await;
    assert!(!left.contains(&Left::Nothing), "{left:?}");
}

/// A repeat that is dropped changes nothing.
pub(super) async fn a_repeat_that_is_dropped_anywhere_leaves_the_transaction_whole<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let mut tx = stage.begin().await;
    executed(job(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    let pool = DB::pool(stage.site.database.url(), 1).await;
    for woken in [false, true] {
        for polls in 0.. {
            let id = format!("{polls}-{woken}");
            let mut tx = DB::begin(&pool).await;
            put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
            let ended = until(Moment { polls, woken }, job(&stage.w, &mut tx, "x")).await;
            put::<DB>(&mut tx, format!("after {id}")).await.expect("the transaction takes statements");
            tx.commit().await.unwrap_or_else(|error| panic!("dropped after {polls} polls: {error}"));
            assert_eq!(stage.rows(format!("before {id}")).await, 1);
            assert_eq!(stage.rows(format!("after {id}")).await, 1);
            if ended.is_some() {
                break;
            }
        }
    }
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

pub(super) async fn a_body_that_is_dropped_leaves_the_callers_own_rows<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    let gate = Gate::new();
    let mut call = Box::pin(gated(&stage.w, &mut tx, "x", &gate));
    gate.stops(&mut call).await;
    drop(call);
    put::<DB>(&mut tx, "after").await.expect("a row");
    // The same key, in the same transaction.
    gate.open();
    executed(gated(&stage.w, &mut tx, "x", &gate)).await;
    tx.commit().await.expect("a commit");
    stage.holds("gated:x", "x").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}

/// A body whose own transaction is not begun to the end, and which goes on regardless.
#[idempotent(key = "careless:<id>", mode = "transactional", idem = w.idem)]
async fn careless<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    polls: usize,
) -> Result<(), Error> {
    put::<DB>(tx, id).await.expect("a row");
    let inner = until(Moment { polls, woken: false }, sqlx::Connection::begin(&mut **tx)).await;
    drop(inner);
    w.effect(id);
    Ok(())
}

pub(super) async fn a_body_that_drops_its_own_transaction_half_way_undoes_no_more_than_itself<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let pool = DB::pool(stage.site.database.url(), 1).await;
    for polls in 0..6 {
        let id = format!("{polls}");
        let mut tx = DB::begin(&pool).await;
        put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
        let called = careless(&stage.w, &mut tx, &id, polls).await;
        put::<DB>(&mut tx, format!("after {id}")).await.expect("the transaction takes statements");
        tx.commit().await.expect("a commit");
        assert_eq!(stage.rows(format!("before {id}")).await, 1);
        assert_eq!(stage.rows(format!("after {id}")).await, 1);
        match called {
            Ok(()) => stage.holds(&format!("careless:{id}"), &id).await,
            Err(_) => stage.lacks(&format!("careless:{id}"), &id).await,
        }
    }
}

/// What the dropped call was waiting for is told to the next statement, and the transaction is whole behind it.
pub(super) async fn a_call_that_is_dropped_while_it_waits_loses_nothing(stage: &Stage<'_, Postgres>) {
    let (mut first, mut second) = (stage.begin().await, stage.begin().await);
    executed(job(&stage.w, &mut first, "x")).await;
    put::<Postgres>(&mut second, "before").await.expect("a row");
    tokio::select! {
        biased;
        () = waiting(stage, 1) => {}
        ended = job(&stage.w, &mut second, "x") => panic!("the other transaction holds the key: {ended:?}"),
    }
    first.commit().await.expect("a commit");
    put::<Postgres>(&mut second, "after").await.expect("a row");
    assert_eq!(replayed(job(&stage.w, &mut second, "x")).await, "did x");
    second.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!((stage.rows("before").await, stage.rows("after").await), (1, 1));
}
