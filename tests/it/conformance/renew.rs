//! Heartbeats.

use std::time::Duration;

use idem_runtime::{
    record::Status,
    store::{Renew, Renewal},
};

use super::{
    rows::{self, HOUR, LEASE, at_rest, written},
    subject::Subject,
};

pub(super) async fn a_heartbeat_moves_the_end_of_the_lease(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let claimed = s.row("billing:1").await;
    let before = s.raw.clock().await;
    assert_eq!(s.renew("billing:1", 1, fence, HOUR).await, Renewal::Renewed);
    let after = s.raw.clock().await;
    let renewed = s.row("billing:1").await;
    let end = renewed.lease_until.expect("a lease");
    assert!((before + 3_600_000_000..=after + 3_600_000_000).contains(&end), "{end}");

    let mut rest = at_rest(renewed);
    rest.lease_until = claimed.lease_until;
    assert_eq!(rest, at_rest(claimed), "and nothing else");
}

pub(super) async fn a_heartbeat_revives_a_stale_claim_that_nobody_took(s: &Subject) {
    let fence = s.stale_claim("billing:1", 1).await;
    assert_eq!(s.renew("billing:1", 1, fence, LEASE).await, Renewal::Renewed);
    let read = s.row("billing:1").await;
    assert!(read.is_alive(read.now, HOUR));
}

pub(super) async fn a_heartbeat_after_a_takeover_neither_revives_nor_prolongs(s: &Subject) {
    let first = s.stale_claim("billing:1", 1).await;
    written(s.replace(&rows::takeover(&s.row("billing:1").await, 2)).await);
    let before = at_rest(s.row("billing:1").await);
    assert_eq!(s.renew("billing:1", 1, first, HOUR).await, Renewal::Lost);
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn a_heartbeat_with_another_fence_is_lost(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let before = at_rest(s.row("billing:1").await);
    assert_eq!(s.renew("billing:1", 1, fence - 1, HOUR).await, Renewal::Lost);
    assert_eq!(s.renew("billing:1", 1, fence + 1, HOUR).await, Renewal::Lost);
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn a_living_holder_goes_on_in_review(s: &Subject) {
    let fence = s.stale_claim("billing:1", 1).await;
    let stale = s.row("billing:1").await;
    written(s.replace(&rows::restated(&stale, Status::NeedsReview)).await);
    assert_eq!(s.renew("billing:1", 1, fence, LEASE).await, Renewal::Renewed);
    let read = s.row("billing:1").await;
    assert_eq!(read.status, Status::NeedsReview);
    assert!(read.lease_until > Some(read.now));
}

pub(super) async fn a_heartbeat_of_an_ended_execution_is_lost(s: &Subject) {
    for word in ["completed", "failed", "released", "paused"] {
        let fence = written(s.insert(word, rows::in_state(Status::from(word), 1)).await);
        let before = at_rest(s.row(word).await);
        assert_eq!(s.renew(word, 1, fence, HOUR).await, Renewal::Lost, "{word}");
        assert_eq!(at_rest(s.row(word).await), before, "{word}");
    }
    assert_eq!(s.renew("absent", 1, 1, HOUR).await, Renewal::Lost);
}

pub(super) async fn a_heartbeat_that_is_still_under_way_does_not_revive_what_its_holder_gave_up(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, fence, rows::held(Some("time-out"))).await);
    let before = at_rest(s.row("billing:1").await);
    assert_eq!(s.renew("billing:1", 1, fence, LEASE).await, Renewal::Lost);
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn each_renewal_of_a_batch_has_its_own_lease(s: &Subject) {
    let keys: Vec<String> = (0..20).map(|n| format!("billing:{n}")).collect();
    let mut batch = Vec::new();
    for (n, key) in (1..).zip(&keys) {
        let fence = s.claim(key, n).await;
        let lease = Duration::from_secs(100 * u64::from(n));
        batch.push(Renew { key: key.as_str().into(), owner: rows::owner(n), fence, lease });
    }
    batch[3].owner = rows::owner(99);
    batch[7].key = "absent".into();
    batch.reverse();

    let renewals = s.store.renew(&batch).await.expect("answers");
    for (renew, renewal) in batch.iter().zip(renewals) {
        let lost = renew.owner == rows::owner(99) || &*renew.key == "absent";
        assert_eq!(renewal, if lost { Renewal::Lost } else { Renewal::Renewed }, "{}", renew.key);
        if !lost {
            let read = s.row(&renew.key).await;
            let left = Duration::from_micros((read.lease_until.expect("a lease") - read.now).unsigned_abs());
            assert!(
                left <= renew.lease && left + Duration::from_secs(50) > renew.lease,
                "{left:?} {renew:?}"
            );
        }
    }
}
