//! A repeat inside of the caller's own transaction leaves that transaction whole.

use std::sync::Arc;

use idem_runtime::{ErrorKind, idempotent};
use sqlx::Transaction;
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    call::{Fault, refused, replayed},
    site::{Site, Worker},
};
use crate::transact::{
    dialect::Dialect,
    stage::{Stage, plays, put},
};

#[idempotent(key = "c7:<id>", mode = "transactional", idem = w.idem)]
async fn job<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<String, Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok("ours".to_owned())
}

/// What the caller writes before and after is there, and the job's own row is not.
async fn leaves_all<DB: Dialect>(
    stage: &Stage<'_, DB>,
    call: impl AsyncFnOnce(&mut Transaction<'static, DB>),
) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "u").await.expect("a row");
    call(&mut tx).await;
    put::<DB>(&mut tx, "v").await.expect("a row");
    tx.commit().await.expect("a commit");
    assert_eq!((stage.rows("u").await, stage.rows("v").await, stage.rows("x").await), (1, 1, 0));
    assert_eq!(stage.w.effects("x"), 0);
}

async fn completed<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.stands("c7:x", "status, result", "'completed', '\"theirs\"'").await;
    leaves_all(stage, async |tx| {
        assert_eq!(replayed(job(&stage.w, tx, "x")).await, "theirs");
    })
    .await;
}

pub(super) async fn c7_a_a_completed_key_leaves_the_transaction_whole(site: &Site) {
    plays!(site, completed);
}

async fn in_progress<DB: Dialect>(stage: &Stage<'_, DB>) {
    let values = format!("'processing', 'aa', {}", i64::MAX / 2);
    stage.stands("c7:x", "status, owner, lease_until", &values).await;
    leaves_all(stage, async |tx| {
        refused(ErrorKind::InProgress, job(&stage.w, tx, "x")).await;
    })
    .await;
}

pub(super) async fn c7_b_a_key_in_progress_elsewhere_leaves_the_transaction_whole(site: &Site) {
    plays!(site, in_progress);
}

const CALLERS: usize = 8;

async fn at_once<DB: Dialect>(stage: &Stage<'_, DB>) {
    let together = Arc::new(Barrier::new(CALLERS));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (w, url) = (stage.w.clone(), stage.site.database.url().to_owned());
        let together = Arc::clone(&together);
        callers.spawn(async move {
            let mut connection = DB::connect(&url).await;
            together.wait().await;
            let mut tx = DB::begin_on(&mut connection).await;
            put::<DB>(&mut tx, "u").await.expect("a row");
            let value = job(&w, &mut tx, "x").await.expect("its value");
            put::<DB>(&mut tx, "v").await.expect("a row");
            tx.commit().await.expect("a commit");
            value
        });
    }
    assert!(callers.join_all().await.into_iter().all(|value| value == "ours"));
    let all = i64::try_from(CALLERS).expect("small");
    assert_eq!((stage.rows("u").await, stage.rows("v").await), (all, all));
    stage.holds("c7:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

pub(super) async fn c7_c_a_key_that_is_claimed_at_once_leaves_each_transaction_whole(site: &Site) {
    plays!(site, at_once);
}
