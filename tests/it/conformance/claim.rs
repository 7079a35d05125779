//! Inserting where the key is absent.

use std::time::Duration;

use idem_runtime::{
    record::Status,
    store::{Answer, Ending, Moment, NewRow},
};

use super::{
    rows::{self, HOUR, at_rest, found, written},
    subject::{Subject, answered, race},
};

pub(super) async fn every_column_comes_back_as_it_was_written(s: &Subject) {
    let row = NewRow {
        attempt: 3,
        takeovers: 2,
        fingerprint: Some("ab".repeat(32)),
        error: Some("time-out after 3 s".to_owned()),
        result: Some(r#"{"amount":"9,90 €"}"#.to_owned()),
        expires: Moment::At(4_000_000_000_000_001),
        alerted: Moment::At(1_700_000_000_000_007),
        ..rows::claim(1)
    };
    let fence = written(s.insert("billing:1", row.clone()).await);
    let read = s.row("billing:1").await;

    assert_eq!(read.key, "billing:1");
    assert_eq!(read.fence, fence);
    assert_eq!(read.completed_at, None);
    let lease = read.lease_until.map_or(Moment::Never, Moment::At);
    assert_eq!(format!("{:?}", rows::again(&read)), format!("{:?}", NewRow { lease, ..row }));
}

pub(super) async fn the_columns_that_a_claim_leaves_out_are_null(s: &Subject) {
    let row = NewRow {
        job: None,
        template: None,
        mode: None,
        on_stale: None,
        owner: None,
        worker: None,
        lease: Moment::Never,
        ..rows::claim(1)
    };
    written(s.insert("billing:1", row.clone()).await);
    assert_eq!(format!("{:?}", rows::again(&s.row("billing:1").await)), format!("{row:?}"));
}

pub(super) async fn a_held_key_is_found_as_it_stands(s: &Subject) {
    s.claim("billing:1", 1).await;
    let before = at_rest(s.row("billing:1").await);
    let met = found(s.insert("billing:1", rows::claim(2)).await);
    assert_eq!(at_rest(met), before);
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn a_repeat_of_a_completed_key_writes_nothing(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    s.finish("billing:1", 1, fence, rows::completed(Some("42"))).await;
    let before = s.raw.trace("billing:1").await;
    let met = found(s.insert("billing:1", rows::claim(2)).await);
    assert_eq!((met.status, met.result.as_deref()), (Status::Completed, Some("42")));
    assert_eq!(s.raw.trace("billing:1").await, before);
}

pub(super) async fn of_32_claimers_one_wins(s: &Subject) {
    let stores = [s.another(), s.another(), s.another(), s.another()];
    let answers = race((0..32_u8).map(|n| {
        let store = stores[usize::from(n % 4)].clone();
        async move {
            let batch = [rows::insert("billing:1", rows::claim(n))];
            (n, answered(|| store.insert(&batch)).await.remove(0))
        }
    }))
    .await;

    let winners: Vec<u8> = answers
        .iter()
        .filter(|(_, answer)| matches!(answer, Answer::Written { .. }))
        .map(|(n, _)| *n)
        .collect();
    assert_eq!(winners.len(), 1, "{winners:?} won");
    let winner = rows::owner(winners[0]);
    for (n, answer) in answers {
        if n != winners[0] {
            assert_eq!(found(answer).owner.as_deref(), Some(winner.as_str()));
        }
    }
    assert_eq!(s.row("billing:1").await.owner, Some(winner));
}

pub(super) async fn batches_that_race_for_the_same_keys_share_them_out(s: &Subject) {
    let stores = [s.another(), s.another(), s.another(), s.another()];
    let keys = 24;
    let wins = race((0..8_u8).map(|n| {
        let store = stores[usize::from(n % 4)].clone();
        async move {
            // Half of the batches come in the opposite order: the store has to put the keys in one.
            let mut batch: Vec<_> =
                (0..keys).map(|key| rows::insert(&format!("billing:{key}"), rows::claim(n))).collect();
            if n % 2 == 1 {
                batch.reverse();
            }
            let answers = answered(|| store.insert(&batch)).await;
            answers.iter().filter(|answer| matches!(answer, Answer::Written { .. })).count()
        }
    }))
    .await;
    assert_eq!(wins.iter().sum::<usize>(), keys, "{wins:?}");
}

pub(super) async fn a_lost_claim_reply_is_recognised(s: &Subject) {
    let first = s.claim("billing:1", 1).await;
    let before = at_rest(s.row("billing:1").await);
    assert_eq!(s.claim("billing:1", 1).await, first);
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn a_claim_that_arrives_again_after_its_end_is_not_taken_for_a_new_one(s: &Subject) {
    let endings = [
        ("c", rows::completed(None), Status::Completed),
        ("f", rows::failed("no"), Status::Failed),
        ("r", rows::released(None), Status::Released),
    ];
    for (key, ending, status) in endings {
        let fence = s.claim(key, 1).await;
        s.finish(key, 1, fence, ending).await;
        assert_eq!(found(s.insert(key, rows::claim(1)).await).status, status);
    }
}

pub(super) async fn a_row_can_begin_completed(s: &Subject) {
    let row = NewRow {
        result: Some("\"sent\"".to_owned()),
        expires: Moment::In(HOUR),
        mode: Some("record_after".to_owned()),
        ..rows::in_state(Status::Completed, 1)
    };
    let fence = written(s.insert("mail:1", row.clone()).await);
    let read = s.row("mail:1").await;
    assert_eq!((&read.status, read.result.as_deref()), (&Status::Completed, Some("\"sent\"")));
    assert!(read.completed_at.is_some());
    assert_eq!(written(s.insert("mail:1", row).await), fence, "its reply, too, can be lost");
    assert_eq!(at_rest(s.row("mail:1").await), at_rest(read));
}

pub(super) async fn a_row_can_begin_failed(s: &Subject) {
    let row = NewRow { error: Some("card expired".to_owned()), ..rows::in_state(Status::Failed, 1) };
    written(s.insert("mail:1", row).await);
    let read = s.row("mail:1").await;
    assert_eq!((&read.status, read.error.as_deref()), (&Status::Failed, Some("card expired")));
    assert_eq!(read.completed_at, None);
}

pub(super) async fn deadlines_count_from_the_databases_clock(s: &Subject) {
    let lease = Duration::from_millis(1500);
    let before = s.raw.clock().await;
    let row = NewRow { lease: Moment::In(lease), expires: Moment::In(HOUR), ..rows::claim(1) };
    written(s.insert("billing:1", row).await);
    let read = s.row("billing:1").await;
    let after = s.raw.clock().await;

    let within = |at: Option<i64>, micros: i64| {
        let at = at.expect("a deadline") - micros;
        assert!((before..=after).contains(&at), "{at} is not in {before}..={after}");
    };
    within(read.lease_until, 1_500_000);
    within(read.expires_at, 3_600_000_000);
    within(Some(read.now), 0);
    // A column that keeps whole seconds begins with the second.
    assert!((before - 1_000_000..=after).contains(&read.created_at), "{} {before}", read.created_at);
}

pub(super) async fn a_deadline_of_a_hundred_years_is_kept(s: &Subject) {
    let century = Duration::from_hours(36_500 * 24);
    let fence = s.claim("billing:1", 1).await;
    let ending = Ending::Completed { result: None, ttl: Some(century) };
    written(s.finish("billing:1", 1, fence, ending).await);
    let read = s.row("billing:1").await;
    let left = read.expires_at.expect("an expiry") - read.now;
    assert!((3_153_599_000_000_000..=3_153_600_000_000_000).contains(&left), "{left}");
    assert_eq!(s.store.purge(10).await.expect("a purge"), 0);
}
