//! A foreign transaction where a database has one writer at a time.

use std::time::{Duration, Instant};

use idem_runtime::store::ErrorClass;

use super::{
    rows::{self, found, written},
    subject::{Subject, answered},
};

pub(super) async fn a_foreign_writer_delays_no_reader(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, fence, rows::completed(Some("7"))).await);
    s.raw.execute("BEGIN IMMEDIATE").await;
    s.raw.execute("UPDATE idempotency_keys SET worker = 'theirs'").await;
    let read = s.row("billing:1").await;
    assert_eq!(read.worker.as_deref(), Some("worker-1"));
    assert_eq!(found(s.insert("billing:1", rows::claim(2)).await).result.as_deref(), Some("7"));
    s.raw.execute("ROLLBACK").await;
}

pub(super) async fn a_foreign_writer_is_waited_for_shortly_and_nothing_is_changed(s: &Subject) {
    s.raw.execute("BEGIN IMMEDIATE").await;
    let began = Instant::now();
    let batch = [rows::insert("billing:1", rows::claim(1))];
    let error = s.store.insert(&batch).await.expect_err("somebody writes");
    assert_ne!(error.class, ErrorClass::Permanent, "{error}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    s.raw.execute("COMMIT").await;
    assert_eq!(s.read("billing:1").await, None);
    written(s.store.insert(&batch).await.expect("an answer").remove(0));
}

pub(super) async fn a_lease_counts_from_the_write_and_not_from_the_wait_before_it(s: &Subject) {
    s.raw.execute("BEGIN IMMEDIATE").await;
    let store = s.store.clone();
    let claim = tokio::spawn(async move {
        let batch = [rows::insert("billing:1", rows::claim(1))];
        answered(|| store.insert(&batch)).await
    });
    // Nobody can see a writer wait for the file; it has begun by then.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let free = s.raw.clock().await;
    s.raw.execute("COMMIT").await;
    written(claim.await.expect("no panic").remove(0));
    let read = s.row("billing:1").await;
    assert!(read.lease_until >= Some(free + 60_000_000), "{read:?} {free}");
    assert!(read.fence >= free, "{read:?} {free}");
}
