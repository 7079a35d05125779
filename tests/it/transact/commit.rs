//! Commits that fail, or of which nobody hears.

use idem_runtime::idempotent;
use idem_tests::Proxy;
use sqlx::Transaction;

use super::{
    dialect::Dialect,
    jobs::job,
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, replayed},
    site::Worker,
};

/// A transaction through a proxy in which a job has run.
async fn through<DB: Dialect>(stage: &Stage<'_, DB>) -> (Proxy, Transaction<'static, DB>) {
    let proxy = Proxy::to(stage.site.database.address().expect("a server"));
    let url = stage.site.database.url_through(proxy.address()).expect("a server");
    let pool = DB::pool(&url, 1).await;
    let mut tx = DB::begin(&pool).await;
    executed(job(&stage.w, &mut tx, "x")).await;
    // With this, nothing of what came before is still to be answered.
    put::<DB>(&mut tx, "caller").await.expect("a row");
    (proxy, tx)
}

pub(super) async fn a_commit_whose_reply_is_lost_leaves_a_replay<DB: Dialect>(stage: &Stage<'_, DB>) {
    let (proxy, tx) = through(stage).await;
    proxy.swallow_replies();
    let swallowed = proxy.reply_swallowed();
    let commit = tokio::spawn(tx.commit());
    swallowed.await;
    proxy.refuse();
    commit.await.expect("no panic").expect_err("no reply came");

    let mut tx = stage.begin().await;
    assert_eq!(replayed(job(&stage.w, &mut tx, "x")).await, "did x");
    tx.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

pub(super) async fn a_commit_that_does_not_arrive_leaves_nothing<DB: Dialect>(stage: &Stage<'_, DB>) {
    let (proxy, tx) = through(stage).await;
    proxy.refuse();
    tx.commit().await.expect_err("the database is gone");

    let mut tx = stage.begin().await;
    executed(job(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("job:x", "x").await;
    assert_eq!(stage.w.effects("x"), 2);
}

/// Writes a row whose parent is looked for at the commit.
#[idempotent(key = "child:<id>", mode = "transactional", idem = w.idem)]
async fn child<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    DB::run(tx, "INSERT INTO children VALUES (1)").await?;
    Ok(())
}

pub(super) async fn a_constraint_that_fails_at_the_commit_leaves_nothing<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.execute("CREATE TABLE parents (id integer PRIMARY KEY)").await;
    stage
        .execute(
            "CREATE TABLE children (parent integer REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)",
        )
        .await;
    let mut tx = stage.begin().await;
    executed(child(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect_err("no parent");
    stage.lacks("child:x", "x").await;

    stage.execute("INSERT INTO parents VALUES (1)").await;
    let mut tx = stage.begin().await;
    executed(child(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("child:x", "x").await;
    assert_eq!(stage.w.effects("x"), 2);
}
