//! Deleting rows whose time is over.

use std::time::Duration;

use idem_runtime::{
    record::Status,
    store::{Audit, Ending, Moment, NewRow, Replace},
};

use super::{
    fence::forgotten,
    raw::Column,
    rows::{self, HOUR, PAST, written},
    subject::{Subject, answered, race},
};

async fn put(s: &Subject, key: &str, status: &str, expires: Moment) {
    let row = NewRow { expires, ..rows::in_state(Status::from(status), 1) };
    written(s.insert(key, row).await);
}

pub(super) async fn purging_takes_ended_rows_past_their_expiry_alone(s: &Subject) {
    let states = ["completed", "failed", "released", "processing", "needs_review", "paused"];
    for status in states {
        put(s, &format!("{status}:past"), status, Moment::At(PAST)).await;
        put(s, &format!("{status}:ahead"), status, Moment::In(HOUR)).await;
        put(s, &format!("{status}:never"), status, Moment::Never).await;
    }
    s.raw.end_lease("processing:past").await;
    assert_eq!(s.store.purge(100).await.expect("a purge"), 3);
    for status in states {
        for expiry in ["past", "ahead", "never"] {
            let gone = expiry == "past" && ["completed", "failed", "released"].contains(&status);
            assert_eq!(s.read(&format!("{status}:{expiry}")).await.is_none(), gone, "{status}:{expiry}");
        }
    }
}

pub(super) async fn a_purged_key_is_fresh(s: &Subject) {
    put(s, "billing:1", "completed", Moment::At(PAST)).await;
    assert_eq!(s.store.purge(1).await.expect("a purge"), 1);
    s.claim("billing:1", 2).await;
    let read = s.row("billing:1").await;
    assert_eq!((read.attempt, read.completed_at, read.expires_at), (1, None, None));
}

pub(super) async fn purging_goes_in_batches(s: &Subject) {
    let expired = NewRow { expires: Moment::At(PAST), ..rows::in_state(Status::Completed, 1) };
    let batch: Vec<_> = (0..25).map(|n| rows::insert(&format!("billing:{n}"), expired.clone())).collect();
    s.store.insert(&batch).await.expect("answers");
    let mut purged = Vec::new();
    for _ in 0..4 {
        purged.push(s.store.purge(10).await.expect("a purge"));
    }
    assert_eq!(purged, [10, 10, 5, 0]);
}

pub(super) async fn two_collectors_share_the_work(s: &Subject) {
    let expired = NewRow { expires: Moment::At(PAST), ..rows::in_state(Status::Completed, 1) };
    let batch: Vec<_> = (0..400).map(|n| rows::insert(&format!("billing:{n}"), expired.clone())).collect();
    s.store.insert(&batch).await.expect("answers");
    s.claim("alive", 1).await;
    let collectors = [s.another(), s.another(), s.another()];
    let purged = race(collectors.map(|store| async move {
        let mut purged = 0;
        loop {
            let some = answered(|| store.purge(16)).await;
            purged += some;
            if some == 0 {
                return purged;
            }
        }
    }))
    .await;
    // One that meets only rows which the others hold finds nothing and leaves the rest to them.
    let rest = s.store.purge(1000).await.expect("a purge");
    assert_eq!(purged.iter().sum::<u64>() + rest, 400, "{purged:?}");
    assert!(s.read("alive").await.is_some());
}

pub(super) async fn a_key_that_lives_anew_is_not_collected(s: &Subject) {
    put(s, "billing:1", "completed", Moment::At(PAST)).await;
    let expired = s.row("billing:1").await;
    let new_life = Replace { renew_birth: true, row: rows::claim(2), ..rows::takeover(&expired, 2) };
    written(s.replace(&new_life).await);
    assert_eq!(s.store.purge(10).await.expect("a purge"), 0);
    assert_eq!(s.row("billing:1").await.owner, Some(rows::owner(2)));
}

pub(super) async fn the_stored_expiry_counts(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let ending = Ending::Completed { result: None, ttl: Some(Duration::from_hours(24)) };
    written(s.finish("billing:1", 1, fence, ending).await);
    assert_eq!(s.store.purge(10).await.expect("a purge"), 0);
    s.raw.set("billing:1", Column::ExpiresAt(Some(PAST))).await;
    assert_eq!(s.store.purge(10).await.expect("a purge"), 1);
}

pub(super) async fn forgetting_takes_the_expected_row_alone(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let claimed = s.row("billing:1").await.version();
    written(s.finish("billing:1", 1, fence, rows::completed(Some("7"))).await);
    assert!(!s.store.forget("billing:1", &claimed, &forgotten()).await.expect("a reply"));
    assert!(s.raw.audit("billing:1").await.is_empty(), "nothing was done");

    let version = s.row("billing:1").await.version();
    let audit = Audit { old_result: Some("7".to_owned()), ..forgotten() };
    assert!(s.store.forget("billing:1", &version, &audit).await.expect("a reply"));
    assert_eq!(s.read("billing:1").await, None);
    assert!(!s.store.forget("billing:1", &version, &audit).await.expect("a reply"), "it is gone already");
    assert_eq!(s.raw.audit("billing:1").await, [["ops", "completed", "forgotten", "asked to", "7"]]);
}

pub(super) async fn a_resolution_leaves_its_line_in_the_audit(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let read = s.row("billing:1").await;
    let audit = Audit {
        actor: "maria".to_owned(),
        from_status: "processing".to_owned(),
        to_status: "released".to_owned(),
        note: "the bank has no such charge".to_owned(),
        old_result: None,
    };
    let resolution = Replace { audit: Some(audit), ..rows::restated(&read, Status::Released) };
    written(s.replace(&resolution).await);
    let line = ["maria", "processing", "released", "the bank has no such charge", ""];
    assert_eq!(s.raw.audit("billing:1").await, [line]);

    let late = Replace {
        audit: resolution.audit.clone(),
        row: rows::claim(2),
        raise_fence: true,
        ..rows::restated(&read, Status::Completed)
    };
    rows::found(s.replace(&late).await);
    assert_eq!(s.raw.audit("billing:1").await, [line], "a refused one leaves none");
}
