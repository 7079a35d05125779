//! What a body and its caller learn of the execution.

use idem_runtime::{ErrorKind, current, idempotent, record::Status};
use idem_tests::Capture;
use sqlx::Transaction;
use tracing::Level;

use super::{
    dialect::Dialect,
    jobs::{job, recorded},
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, failed, refused, replayed},
    site::Worker,
};

#[idempotent(key = "aware:<id>", mode = "transactional", ttl = "1h", name = "aware", idem = w.idem)]
async fn aware<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(i64, u32), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    let current = current();
    assert_eq!(current.key().as_str(), format!("aware:{id}"));
    assert_eq!(current.deadline(), None, "nobody takes it over");
    assert!(!current.is_lost());
    assert_eq!(current.derived_key("stripe").len(), 32);
    let claimed = format!("{} = 'aware:{id}' AND status = 'processing'", DB::KEY);
    let seen = format!("SELECT count(*) FROM idempotency_keys WHERE {claimed}");
    assert_eq!(DB::number(tx, &seen).await?, 1, "its claim, as the transaction sees it");
    Ok((current.fence(), current.attempt()))
}

pub(super) async fn a_body_knows_its_key_its_fence_and_its_attempt<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut tx = stage.begin().await;
    let (fence, attempt) = executed(aware(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    let row = stage.w.row("aware:x").await;
    assert_eq!((row.status.clone(), row.fence, row.attempt, attempt), (Status::Completed, fence, 1, 1));
    assert_eq!((row.mode.as_deref(), row.job.as_deref()), (Some("transactional"), Some("aware")));
    assert_eq!((row.lease_until, row.owner.map(|owner| owner.len())), (None, Some(32)));
    assert!(row.completed_at.is_some());
    let left = row.expires_at.expect("a ttl") - row.now;
    assert!((3_000_000_000..=3_600_000_000).contains(&left), "{left}");

    // Past its ttl, within a transaction.
    stage.site.set("aware:x", "expires_at = 1").await;
    let mut tx = stage.begin().await;
    let (later, attempt) = executed(aware(&stage.w, &mut tx, "x")).await;
    assert_eq!(replayed(aware(&stage.w, &mut tx, "x")).await, (later, 1));
    tx.commit().await.expect("a commit");
    assert!(later > fence && attempt == 1);
    assert_eq!((stage.w.effects("x"), stage.rows("x").await), (2, 2));
}

/// Each ending is one event.
pub(super) async fn each_ending_is_one_event<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.stands("job:r", "status", "'needs_review'").await;
    stage.stands("job:b", "status", "'paused'").await;
    let log = Capture::here();
    let mut tx = stage.begin().await;
    executed(job(&stage.w, &mut tx, "x")).await;
    replayed(job(&stage.w, &mut tx, "x")).await;
    failed(recorded(&stage.w, &mut tx, "x")).await;
    refused(ErrorKind::PreviouslyFailed, recorded(&stage.w, &mut tx, "x")).await;
    refused(ErrorKind::NeedsReview, job(&stage.w, &mut tx, "r")).await;
    refused(ErrorKind::InProgress, job(&stage.w, &mut tx, "b")).await;
    tx.rollback().await.expect("a rollback");
    let events = log.events();
    let ours: Vec<_> = events
        .iter()
        .filter(|event| event.target.starts_with("idem_runtime"))
        .map(|event| (event.level, event.message.as_str()))
        .collect();
    let right = [
        (Level::DEBUG, "done"),
        (Level::INFO, "already done, skipped"),
        (Level::DEBUG, "done"),
        (Level::ERROR, "refused"),
        (Level::ERROR, "needs review: not run"),
        (Level::DEBUG, "busy: another execution holds the key"),
    ];
    assert_eq!(ours, right, "{events:?}");
}
