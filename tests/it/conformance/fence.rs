//! Fences only grow for a key, whatever becomes of its row and of the clock.

use idem_runtime::store::{Audit, Ending};

use super::{
    raw::quoted,
    rows::{self, written},
    subject::Subject,
};

/// More than a second ahead of any clock in the test.
const AHEAD: i64 = 3_600_000_000;

pub(super) fn forgotten() -> Audit {
    Audit {
        actor: "ops".to_owned(),
        from_status: "completed".to_owned(),
        to_status: "forgotten".to_owned(),
        note: "asked to".to_owned(),
        old_result: None,
    }
}

pub(super) async fn a_fence_is_the_databases_time(s: &Subject) {
    let before = s.raw.clock().await;
    let fence = s.claim("billing:1", 1).await;
    let after = s.raw.clock().await;
    assert!((before..=after).contains(&fence), "{fence} is not in {before}..={after}");
}

pub(super) async fn takeovers_within_one_tick_have_growing_fences(s: &Subject) {
    let mut fence = s.claim("billing:1", 0).await;
    for n in 1..=40 {
        let read = s.row("billing:1").await;
        let next = written(s.replace(&rows::takeover(&read, n)).await);
        assert!(next > fence, "{next} {fence}");
        fence = next;
    }
}

pub(super) async fn a_fence_grows_across_a_release(s: &Subject) {
    let first = s.claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, first, rows::released(None)).await);
    let released = s.row("billing:1").await;
    assert_eq!(released.fence, first);
    assert!(written(s.replace(&rows::takeover(&released, 2)).await) > first);
}

async fn ended_and_expired(s: &Subject, key: &str, n: u8) -> i64 {
    let fence = s.claim(key, n).await;
    let ending =
        Ending::Released { error: None, purge_after: Some(std::time::Duration::ZERO), withdrawn: false };
    written(s.finish(key, n, fence, ending).await);
    fence
}

pub(super) async fn a_fence_grows_across_a_purge_within_one_tick(s: &Subject) {
    let mut fence = 0;
    for n in 1..=20 {
        let next = ended_and_expired(s, "billing:1", n).await;
        assert!(next > fence, "{next} {fence}");
        fence = next;
        assert_eq!(s.store.purge(10).await.expect("a purge"), 1);
    }
}

pub(super) async fn a_fence_grows_across_a_forgotten_row(s: &Subject) {
    let mut fence = 0;
    for n in 1..=20 {
        let next = ended_and_expired(s, "billing:1", n).await;
        assert!(next > fence, "{next} {fence}");
        fence = next;
        let version = s.row("billing:1").await.version();
        assert!(s.store.forget("billing:1", &version, &forgotten()).await.expect("a reply"));
    }
}

pub(super) async fn put_ahead(s: &Subject, key: &str) -> i64 {
    let ahead = s.raw.clock().await + AHEAD;
    s.raw
        .execute(format!("UPDATE idempotency_keys SET fence = {ahead} WHERE \"key\" = {}", quoted(key)))
        .await;
    ahead
}

pub(super) async fn a_takeover_passes_a_fence_that_is_ahead_of_the_clock(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let ahead = put_ahead(s, "billing:1").await;
    let stale = s.row("billing:1").await;
    assert_eq!(written(s.replace(&rows::takeover(&stale, 2)).await), ahead + 1);
}

pub(super) async fn a_purge_remembers_a_fence_that_is_ahead_of_the_clock(s: &Subject) {
    ended_and_expired(s, "billing:1", 1).await;
    ended_and_expired(s, "billing:2", 1).await;
    let ahead = put_ahead(s, "billing:1").await;
    assert_eq!(s.store.purge(10).await.expect("a purge"), 2);
    assert!(s.claim("billing:1", 2).await > ahead);

    let many = [rows::insert("billing:3", rows::claim(2)), rows::insert("billing:4", rows::claim(2))];
    for answer in s.another().insert(&many).await.expect("answers") {
        assert!(written(answer) > ahead, "any key may have been the purged one");
    }
}

pub(super) async fn a_forgotten_row_leaves_its_fence_behind(s: &Subject) {
    ended_and_expired(s, "billing:1", 1).await;
    let ahead = put_ahead(s, "billing:1").await;
    let version = s.row("billing:1").await.version();
    assert!(s.store.forget("billing:1", &version, &forgotten()).await.expect("a reply"));
    assert!(s.claim("billing:1", 2).await > ahead);
}

pub(super) async fn a_fence_survives_every_ending_and_a_hold_raises_it(s: &Subject) {
    let endings = [rows::completed(None), rows::failed("no"), rows::released(None), rows::held(None)];
    for (n, ending) in (1..).zip(endings) {
        let key = format!("billing:{n}");
        let fence = s.claim(&key, n).await;
        let right = fence + i64::from(matches!(ending, Ending::Held { .. }));
        assert_eq!(written(s.finish(&key, n, fence, ending).await), right);
        let read = s.row(&key).await;
        assert_eq!((read.owner, read.fence), (Some(rows::owner(n)), right));
    }
}
