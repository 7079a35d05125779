//! Futures that are dropped half way.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    rows::{self, written},
    subject::{self, Subject},
};

/// From before the first byte to after the answer.
pub(super) fn moments() -> impl Iterator<Item = Duration> {
    (0..24).map(|n| Duration::from_micros(n * n * 8))
}

pub(super) async fn a_dropped_claim_is_made_or_not_and_the_store_goes_on(s: &Subject) {
    for (n, moment) in moments().enumerate() {
        let key = format!("billing:{n}");
        let batch = [rows::insert(&key, rows::claim(1)), rows::insert(&format!("{key}:b"), rows::claim(1))];
        // Whether it was in time is the point of neither branch.
        let _ = timeout(moment, s.store.insert(&batch)).await;
        for answer in subject::answered(|| s.store.insert(&batch)).await {
            written(answer);
        }
        assert_eq!(s.row(&key).await.owner, Some(rows::owner(1)));
    }
}

pub(super) async fn a_dropped_completion_is_recorded_or_not_and_the_store_goes_on(s: &Subject) {
    for (n, moment) in moments().enumerate() {
        let key = format!("billing:{n}");
        let fence = s.claim(&key, 1).await;
        let batch = [subject::finish(&key, 1, fence, rows::completed(Some("1")))];
        let _ = timeout(moment, s.store.finish(&batch)).await;
        written(subject::answered(|| s.store.finish(&batch)).await.remove(0));
        assert_eq!(s.row(&key).await.result.as_deref(), Some("1"));
    }
}

pub(super) async fn a_dropped_takeover_is_made_or_not_and_the_store_goes_on(s: &Subject) {
    for (n, moment) in moments().enumerate() {
        let key = format!("billing:{n}");
        s.stale_claim(&key, 1).await;
        let replacement = rows::takeover(&s.row(&key).await, 2);
        let _ = timeout(moment, s.store.replace(&replacement)).await;
        written(subject::answered(|| s.store.replace(&replacement)).await);
        let read = s.row(&key).await;
        assert_eq!((read.owner, read.attempt), (Some(rows::owner(2)), 2));
    }
}
