//! The end of an execution, and who may write it.

use std::time::Duration;

use idem_runtime::{
    record::Status,
    store::{Answer, Ending, Moment, NewRow},
};

use super::{
    rows::{self, HOUR, at_rest, found, written},
    subject::Subject,
};

pub(super) async fn a_completion_is_recorded(s: &Subject) {
    let row = NewRow { error: Some("first try: time-out".to_owned()), ..rows::claim(1) };
    let fence = written(s.insert("billing:1", row).await);
    let ending = Ending::Completed { result: Some("\"r-7\"".to_owned()), ttl: Some(HOUR) };
    assert_eq!(written(s.finish("billing:1", 1, fence, ending).await), fence);

    let read = s.row("billing:1").await;
    assert_eq!((&read.status, read.result.as_deref()), (&Status::Completed, Some("\"r-7\"")));
    assert_eq!((read.lease_until, read.attempt), (None, 1));
    assert_eq!(read.error.as_deref(), Some("first try: time-out"), "history stays");
    let left = read.expires_at.expect("an expiry") - read.now;
    assert!((3_590_000_000..=3_600_000_000).contains(&left), "{left}");
    let age = read.now - read.completed_at.expect("a moment");
    assert!((-1_000..10_000_000).contains(&age), "{age}");
}

pub(super) async fn a_completion_for_ever_has_no_expiry(s: &Subject) {
    let row = NewRow { expires: Moment::In(HOUR), ..rows::claim(1) };
    let fence = written(s.insert("billing:1", row).await);
    written(s.finish("billing:1", 1, fence, rows::completed(None)).await);
    assert_eq!(s.row("billing:1").await.expires_at, None);
}

pub(super) async fn a_lost_completion_reply_is_recognised(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let ending = Ending::Completed { result: Some("1".to_owned()), ttl: Some(HOUR) };
    written(s.finish("billing:1", 1, fence, ending.clone()).await);
    let before = at_rest(s.row("billing:1").await);
    assert_eq!(written(s.finish("billing:1", 1, fence, ending).await), fence);
    assert_eq!(at_rest(s.row("billing:1").await), before, "completed once, at its first time");
}

pub(super) async fn a_zombie_cannot_complete(s: &Subject) {
    let first = s.stale_claim("billing:1", 1).await;
    written(s.replace(&rows::takeover(&s.row("billing:1").await, 2)).await);
    let before = at_rest(s.row("billing:1").await);
    for ending in [rows::completed(Some("1")), rows::failed("no"), rows::released(None), rows::held(None)] {
        assert_eq!(found(s.finish("billing:1", 1, first, ending).await).owner, Some(rows::owner(2)));
    }
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn an_owner_with_another_fence_cannot_complete(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let before = at_rest(s.row("billing:1").await);
    for wrong in [fence - 1, fence + 1, 0] {
        found(s.finish("billing:1", 1, wrong, rows::completed(Some("1"))).await);
    }
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn a_late_completion_counts_while_nobody_took_the_claim(s: &Subject) {
    let fence = s.stale_claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, fence, rows::completed(Some("1"))).await);
    assert_eq!(s.row("billing:1").await.status, Status::Completed);
}

/// What becomes of a row: the ending is written, stands there already, or is refused.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Ends,
    Stands,
    Stays,
}

pub(super) async fn each_ending_counts_in_its_own_states_alone(s: &Subject) {
    use Fate::{Ends, Stands, Stays};
    // The completed row holds no result: with one, the completion is another's.
    let endings = [
        rows::completed(None),
        rows::completed(Some("1")),
        rows::failed("no"),
        rows::released(Some("no")),
        rows::held(Some("no")),
    ];
    let table = [
        ("processing", [Ends, Ends, Ends, Ends, Ends]),
        ("needs_review", [Ends, Ends, Stays, Stays, Stays]),
        ("released", [Ends, Ends, Stays, Stands, Stays]),
        ("completed", [Stands, Stays, Stays, Stays, Stays]),
        ("failed", [Stays, Stays, Stands, Stays, Stays]),
        ("paused", [Stays, Stays, Stays, Stays, Stays]),
    ];
    for (word, fates) in table {
        for (at, (ending, fate)) in endings.iter().zip(fates).enumerate() {
            let key = format!("{word}:{}:{at}", ending.status());
            let fence = written(s.insert(&key, rows::in_state(Status::from(word), 1)).await);
            let before = at_rest(s.row(&key).await);
            let answer = s.finish(&key, 1, fence, ending.clone()).await;
            let after = at_rest(s.row(&key).await);
            match fate {
                Ends => {
                    assert_eq!(written(answer), after.fence, "{key}");
                    assert_eq!(after.status, ending.status(), "{key}");
                    assert_ne!(after, before, "{key}");
                }
                Stands => {
                    assert_eq!(written(answer), fence, "{key}");
                    assert_eq!(after, before, "{key}");
                }
                Stays => {
                    assert_eq!(at_rest(found(answer)), before, "{key}");
                    assert_eq!(after, before, "{key}");
                }
            }
        }
    }
}

pub(super) async fn an_absent_key_has_nothing_to_end(s: &Subject) {
    for ending in [rows::completed(None), rows::failed("no"), rows::released(None), rows::held(None)] {
        assert_eq!(s.finish("billing:1", 1, 1, ending).await, Answer::Gone);
    }
    assert_eq!(s.read("billing:1").await, None);
}

pub(super) async fn a_release_frees_the_key_and_keeps_its_history(s: &Subject) {
    let row = NewRow { attempt: 3, takeovers: 1, ..rows::claim(1) };
    let fence = written(s.insert("billing:1", row).await);
    written(s.finish("billing:1", 1, fence, rows::released(Some("no such card"))).await);

    let read = s.row("billing:1").await;
    assert_eq!((&read.status, read.error.as_deref()), (&Status::Released, Some("no such card")));
    assert_eq!((read.attempt, read.takeovers, read.lease_until), (3, 1, None));
    assert_eq!(read.completed_at, None);
    let left = read.expires_at.expect("a time to purge it") - read.now;
    assert!((3_590_000_000..=3_600_000_000).contains(&left), "{left}");
}

pub(super) async fn a_withdrawn_claim_counts_as_no_attempt(s: &Subject) {
    let row = NewRow { attempt: 2, ..rows::claim(1) };
    let fence = written(s.insert("billing:1", row).await);
    let ending = Ending::Released { error: None, purge_after: Some(HOUR), withdrawn: true };
    for _ in 0..2 {
        written(s.finish("billing:1", 1, fence, ending.clone()).await);
        assert_eq!(s.row("billing:1").await.attempt, 1, "once, however often it is said");
    }
}

pub(super) async fn a_hold_makes_the_claim_stale_at_once(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    for _ in 0..2 {
        written(s.finish("billing:1", 1, fence, rows::held(Some("time-out"))).await);
        let read = s.row("billing:1").await;
        assert_eq!((&read.status, read.error.as_deref()), (&Status::Processing, Some("time-out")));
        assert_eq!((read.owner.as_deref(), read.attempt), (Some(rows::owner(1).as_str()), 1));
        assert!(read.lease_until.is_some_and(|end| end <= read.now), "{read:?}");
        assert!(!read.is_alive(read.now, HOUR));
    }
}

pub(super) async fn an_ending_without_an_error_keeps_the_last_one(s: &Subject) {
    for (key, ending) in [("r", rows::released(None)), ("h", rows::held(None)), ("c", rows::completed(None))]
    {
        let row = NewRow { error: Some("first try".to_owned()), ..rows::claim(1) };
        let fence = written(s.insert(key, row).await);
        written(s.finish(key, 1, fence, ending).await);
        assert_eq!(s.row(key).await.error.as_deref(), Some("first try"), "{key}");
    }
}

pub(super) async fn a_failure_is_recorded_with_its_message_and_expiry(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, fence, rows::failed("card stolen")).await);
    let read = s.row("billing:1").await;
    assert_eq!((&read.status, read.error.as_deref()), (&Status::Failed, Some("card stolen")));
    assert_eq!((read.lease_until, read.completed_at), (None, None));
    assert!(read.expires_at > Some(read.now));
}

pub(super) async fn no_result_is_not_the_result_null(s: &Subject) {
    for (key, result) in [("none", None), ("null", Some("null")), ("text", Some("\"\""))] {
        let fence = s.claim(key, 1).await;
        written(s.finish(key, 1, fence, rows::completed(result)).await);
        assert_eq!(s.row(key).await.result.as_deref(), result, "{key}");
    }
}

pub(super) async fn results_come_back_byte_for_byte(s: &Subject) {
    let results = [
        r#"{"a": 1, "a": 2, "b":  [ ]}"#.to_owned(),
        r#""\u0000 \\ \" ' % _ é e\u0301 \ud83d\ude00""#.to_owned(),
        "\"Zürich \u{1F600} \u{2028} Ω\"".to_owned(),
        format!("{:?}", "x".repeat(1_000_000)),
        "0.30000000000000004".to_owned(),
        "18446744073709551615".to_owned(),
    ];
    for (n, result) in results.iter().enumerate() {
        let key = format!("billing:{n}");
        let fence = s.claim(&key, 1).await;
        written(s.finish(&key, 1, fence, rows::completed(Some(result))).await);
        assert!(s.row(&key).await.result.as_ref() == Some(result), "{key}");
    }
}

pub(super) async fn an_expiry_of_no_time_is_now(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let ending = Ending::Completed { result: None, ttl: Some(Duration::ZERO) };
    written(s.finish("billing:1", 1, fence, ending).await);
    let read = s.row("billing:1").await;
    assert!(read.expires_at.is_some_and(|end| end <= read.now), "{read:?}");
}
