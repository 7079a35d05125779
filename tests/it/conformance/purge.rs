//! Deleting rows whose time is over.

use std::{pin::Pin, sync::Arc, time::Duration};

use idem_runtime::{
    record::{Status, Version},
    store::{Answer, Audit, Ending, Moment, NewRow, Replace},
};

use super::{
    fence::{forgotten, put_ahead},
    phase::{ended_with_phases, insert, left, send, under},
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

/// Jobs that are named alike and live on, each with phases of its own, and a row that is named like the beginning of a
/// phase.
async fn neighbours(s: &Subject) -> Vec<Arc<str>> {
    let mut keys: Vec<Arc<str>> = vec!["k/".into()];
    s.claim("k/", 7).await;
    for job in ["k0", "k:1", "k!", "k-", "K", "j", "k%2F"] {
        let phases = ended_with_phases(s, job, 7, "completed").await;
        s.raw.set(job, Column::ExpiresAt(None)).await;
        keys.extend(phases.into_iter().chain([job.into()]));
    }
    keys
}

pub(super) async fn purging_takes_the_phases_of_its_jobs_along(s: &Subject) {
    let others = neighbours(s).await;
    for status in ["completed", "failed", "released"] {
        let phases = ended_with_phases(s, "k", 1, status).await;
        assert_eq!(left(&*s.store, &phases).await, 3);
        assert_eq!(s.store.purge(10).await.expect("a purge"), 1, "phases are not counted");
        assert_eq!(s.read("k").await, None);
        assert_eq!(left(&*s.store, &phases).await, 0);
        assert_eq!(left(&*s.store, &others).await, others.len(), "theirs stay");
    }
}

pub(super) async fn a_job_that_is_not_purged_keeps_its_phases(s: &Subject) {
    for (at, (status, expires)) in [
        ("completed", None),
        ("failed", Some(i64::MAX)),
        ("processing", Some(PAST)),
        ("needs_review", Some(PAST)),
        ("paused", Some(PAST)),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("k{at}");
        let phases = ended_with_phases(s, &key, 1, status).await;
        s.raw.set(&key, Column::ExpiresAt(expires)).await;
        assert_eq!(s.store.purge(10).await.expect("a purge"), 0, "{status}");
        assert_eq!(left(&*s.store, &phases).await, 3, "{status}");
    }
}

pub(super) async fn a_batch_of_a_purge_leaves_the_phases_of_other_jobs(s: &Subject) {
    let mut jobs = Vec::new();
    for n in 0..10_u8 {
        let key = format!("k{n}");
        jobs.push((ended_with_phases(s, &key, n, "completed").await, key));
    }
    for done in [4, 8, 10] {
        assert_eq!(s.store.purge(4).await.expect("a purge"), if done == 10 { 2 } else { 4 });
        let mut gone = 0;
        for (phases, key) in &jobs {
            let is_gone = s.read(key).await.is_none();
            assert_eq!(left(&*s.store, phases).await, if is_gone { 0 } else { 3 }, "{key}");
            gone += usize::from(is_gone);
        }
        assert_eq!(gone, done);
    }
}

pub(super) async fn a_job_that_is_claimed_while_it_is_purged_keeps_its_phases_or_is_gone(s: &Subject) {
    for n in 0..40_u8 {
        let key = format!("k{n}");
        let phases = ended_with_phases(s, &key, 1, "released").await;
        let claim = rows::takeover(&s.row(&key).await, 2);
        let (store, another) = (s.store.clone(), s.another());
        let contenders: [Pin<Box<dyn Future<Output = bool> + Send>>; 2] = [
            Box::pin(async move { answered(|| store.purge(10)).await > 0 }),
            Box::pin(
                async move { matches!(answered(|| another.replace(&claim)).await, Answer::Written { .. }) },
            ),
        ];
        let done = race(contenders).await;
        let claimed = s.read(&key).await.is_some_and(|row| row.owner == Some(rows::owner(2)));
        // A collector that met the row while it was being claimed has passed over it, and so nobody else got it.
        assert_eq!(left(&*s.store, &phases).await, if claimed { 3 } else { 0 }, "{key} {done:?}");
        assert_eq!(s.read(&key).await.is_some(), claimed, "{key} {done:?}");
        assert_eq!(done.iter().filter(|won| **won).count(), 1, "{key}");
    }
}

pub(super) async fn forgetting_takes_the_phases_along(s: &Subject) {
    let others = neighbours(s).await;
    let phases = ended_with_phases(s, "k", 1, "completed").await;
    let version = s.row("k").await.version();
    let stale = Version { fence: version.fence + 1, ..version.clone() };
    assert!(!s.store.forget("k", &stale, &forgotten()).await.expect("a reply"));
    assert_eq!(left(&*s.store, &phases).await, 3);
    assert!(s.store.forget("k", &version, &forgotten()).await.expect("a reply"));
    assert_eq!(left(&*s.store, &phases).await, 0);
    assert_eq!(left(&*s.store, &others).await, others.len(), "theirs stay");
    assert_eq!(s.raw.audit("k").await.len(), 1, "one line for the job");
}

pub(super) async fn a_phase_leaves_its_fence_behind(s: &Subject) {
    for purges in [true, false] {
        let phases = ended_with_phases(s, "k", 1, "completed").await;
        let mut ahead = 0;
        for phase in &phases[1..2] {
            ahead = put_ahead(s, phase).await;
        }
        if purges {
            assert_eq!(s.store.purge(10).await.expect("a purge"), 1);
        } else {
            let version = s.row("k").await.version();
            assert!(s.store.forget("k", &version, &forgotten()).await.expect("a reply"));
        }
        assert_eq!(left(&*s.store, &phases).await, 0);
        let fence = s.claim("k", 2).await;
        assert!(fence > ahead, "{fence} {ahead}");
        let job = under("k", 2, fence);
        assert_eq!(written(send(s, &insert(&job, "b:2", rows::claim(2))).await), fence);
        let version = s.row("k").await.version();
        assert!(s.store.forget("k", &version, &forgotten()).await.expect("a reply"));
    }
}
