//! What a call does about the row it meets: every line of the decision table.

use std::{sync::mpsc, time::Duration};

use idem_runtime::{Alert, ErrorKind, idempotent, record::Status};
use sqlx::Transaction;

use super::{
    dialect::Dialect,
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, refused, replayed},
    site::{Worker, at_rest},
};

#[idempotent(key = "met:<id>", mode = "transactional", fingerprint = (amount), idem = w.idem)]
async fn met<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: u32,
) -> Result<String, Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok(format!("{amount}"))
}

#[idempotent(key = "met-unit:<id>", mode = "transactional", idem = w.idem)]
async fn met_unit<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok(())
}

/// The call is refused; its row, its caller's rows and its transaction are as they were.
async fn is_refused<DB: Dialect>(stage: &Stage<'_, DB>, id: &str, kind: ErrorKind) -> idem_runtime::Error {
    let key = format!("met:{id}");
    let row = at_rest(stage.w.row(&key).await);
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, format!("before {id}")).await.expect("a row");
    let error = refused(kind, met(&stage.w, &mut tx, id, 1)).await.idem();
    put::<DB>(&mut tx, format!("after {id}")).await.expect("a row");
    tx.commit().await.expect("a commit");
    assert_eq!(at_rest(stage.w.row(&key).await), row);
    assert_eq!((stage.rows(id).await, stage.w.effects(id)), (0, 0));
    let own = (stage.rows(format!("before {id}")).await, stage.rows(format!("after {id}")).await);
    assert_eq!(own, (1, 1));
    error
}

pub(super) async fn a_completed_key_replays<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.stands("met:x", "status, result", "'completed', '\"theirs\"'").await;
    stage.stands("met-unit:x", "status", "'completed'").await;
    let mut tx = stage.begin().await;
    assert_eq!(replayed(met(&stage.w, &mut tx, "x", 1)).await, "theirs");
    replayed(met_unit(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    assert_eq!(stage.w.effects("x"), 0);
}

pub(super) async fn a_completed_key_without_a_result_is_told<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.stands("met:x", "status", "'completed'").await;
    is_refused(stage, "x", ErrorKind::AlreadyCompleted).await;
    stage.stands("met:y", "status, result", "'completed', '[1]'").await;
    is_refused(stage, "y", ErrorKind::ReplayUnreadable).await;
}

pub(super) async fn a_row_of_others_is_not_ours<DB: Dialect>(stage: &Stage<'_, DB>) {
    for (n, status) in ["completed", "processing", "needs_review", "failed"].into_iter().enumerate() {
        let (id, other) = (format!("f{n}"), format!("t{n}"));
        stage.stands(&format!("met:{id}"), "status, fingerprint", &format!("'{status}', 'another'")).await;
        is_refused(stage, &id, ErrorKind::FingerprintMismatch).await;
        stage.stands(&format!("met:{other}"), "status, template", &format!("'{status}', 'other:<>'")).await;
        is_refused(stage, &other, ErrorKind::KeyConflict).await;
    }
    stage.stands("met:u", "status", "'paused'").await;
    is_refused(stage, "u", ErrorKind::InProgress).await;
}

pub(super) async fn a_key_that_needs_review_or_failed_is_told<DB: Dialect>(stage: &Stage<'_, DB>) {
    stage.stands("met:r", "status, alerted_at", "'needs_review', 1").await;
    let error = is_refused(stage, "r", ErrorKind::NeedsReview).await;
    assert_eq!(error.retry_after(), Some(Duration::from_mins(15)));
    stage.stands("met:f", "status, error", "'failed', 'no such user'").await;
    let error = is_refused(stage, "f", ErrorKind::PreviouslyFailed).await;
    assert!(error.to_string().contains("no such user"), "{error}");
}

/// A claim that is committed is somebody's who is at work elsewhere: no lock tells when it ends.
pub(super) async fn a_committed_claim_is_in_progress_at_once<DB: Dialect>(stage: &Stage<'_, DB>) {
    let far = i64::MAX / 2;
    stage.stands("met:x", "status, owner, lease_until", &format!("'processing', 'aa', {far}")).await;
    let error = is_refused(stage, "x", ErrorKind::InProgress).await;
    assert!(error.retry_after().is_some());
    stage.stands("met:y", "status", "'processing'").await;
    is_refused(stage, "y", ErrorKind::InProgress).await;
}

pub(super) async fn what_no_longer_counts_runs<DB: Dialect>(stage: &Stage<'_, DB>) {
    let rows = [
        ("r", "status, attempt, fence", "'released', 2, 5", 3),
        ("c", "status, attempt, fence, expires_at", "'completed', 2, 5, 1", 1),
        ("f", "status, attempt, fence, expires_at", "'failed', 2, 5, 1", 1),
        ("o", "status, attempt, fence, expires_at, template", "'completed', 2, 5, 1, 'other:<>'", 1),
    ];
    let mut tx = stage.begin().await;
    for (id, ..) in rows {
        assert_eq!(executed(met(&stage.w, &mut tx, &format!("absent-{id}"), 3)).await, "3");
    }
    tx.rollback().await.expect("a rollback");
    for (id, columns, values, attempt) in rows {
        let key = format!("met:{id}");
        stage
            .stands(&key, &format!("{columns}, created_at"), &format!("{values}, '2020-01-01 00:00:00'"))
            .await;
        let before = stage.w.row(&key).await;
        let mut tx = stage.begin().await;
        assert_eq!(executed(met(&stage.w, &mut tx, id, 3)).await, "3");
        tx.commit().await.expect("a commit");
        stage.holds(&key, id).await;
        let row = stage.w.row(&key).await;
        assert!(row.fence > 5, "{row:?}");
        assert_eq!(row.attempt, attempt, "{row:?}");
        assert_eq!(
            row.created_at > before.created_at,
            id != "r",
            "a new life but for what was released: {row:?}"
        );
    }
}

/// A claim whose worker died: nothing of it is taken over here. The row says so, whatever becomes of the caller, and
/// a person is told once.
pub(super) async fn a_stale_claim_needs_review_though_the_caller_rolls_back<DB: Dialect>(
    stage: &Stage<'_, DB>,
) {
    let (tell, told) = mpsc::channel();
    let hook = move |alerts: &[Alert]| {
        for alert in alerts {
            // The test may have ended.
            let _ = tell.send(alert.key.clone());
        }
    };
    let w = stage.site.worker_by(|builder| builder.on_alert(hook)).await;
    let mut keys = Vec::new();
    for (n, policy) in ["'retry'", "'probe'", "'alert'", "NULL"].into_iter().enumerate() {
        for (whose, owner) in [("ours", "'aa'"), ("foreign", "NULL")] {
            let id = format!("{n}-{whose}");
            let columns = "status, owner, on_stale, lease_until, attempt";
            stage
                .stands(&format!("met:{id}"), columns, &format!("'processing', {owner}, {policy}, 1, 1"))
                .await;
            keys.push(id);
        }
    }
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    for id in &keys {
        let error = refused(ErrorKind::NeedsReview, met(&w, &mut tx, id, 1)).await.idem();
        assert!(error.is_retryable());
    }
    tx.rollback().await.expect("a rollback");
    for id in &keys {
        let key = format!("met:{id}");
        let row = w.row_such_that(&key, "told", |row| row.alerted_at.is_some()).await;
        assert_eq!(row.status, Status::NeedsReview);
        let mut tx = stage.begin().await;
        refused(ErrorKind::NeedsReview, met(&w, &mut tx, id, 1)).await;
        tx.commit().await.expect("a commit");
        assert_eq!((stage.rows(id).await, w.effects(id)), (0, 0));
    }
    let mut alerts: Vec<_> = told.try_iter().collect();
    alerts.sort_unstable();
    keys.sort_unstable();
    assert_eq!(alerts, keys.iter().map(|id| format!("met:{id}")).collect::<Vec<_>>());
}
