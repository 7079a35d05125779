//! Replacing a row that is still as it was read.

use idem_runtime::{
    record::{Status, Version},
    store::{Answer, Moment, NewRow, Renew, Renewal, Replace},
};
use tokio::spawn;

use super::{
    raw::Column,
    rows::{self, LEASE, at_rest, found, written},
    subject::{self, Subject, answered, race},
};

pub(super) async fn a_stale_claim_is_taken_over(s: &Subject) {
    let first = s.stale_claim("billing:1", 1).await;
    let stale = s.row("billing:1").await;
    let second = written(s.replace(&rows::takeover(&stale, 2)).await);
    assert!(second > first, "{second} {first}");

    let read = s.row("billing:1").await;
    assert_eq!((read.owner, read.fence), (Some(rows::owner(2)), second));
    assert_eq!((read.attempt, read.takeovers), (2, 1));
    assert!(read.lease_until > Some(read.now));
    assert_eq!(read.created_at, stale.created_at);
}

pub(super) async fn of_32_heirs_one_takes_over(s: &Subject) {
    s.stale_claim("billing:1", 99).await;
    let stale = s.row("billing:1").await;
    let stores = [s.another(), s.another(), s.another(), s.another()];
    let answers = race((0..32_u8).map(|n| {
        let store = stores[usize::from(n % 4)].clone();
        let replacement = rows::takeover(&stale, n);
        async move { (n, answered(|| store.replace(&replacement)).await) }
    }))
    .await;

    let winners: Vec<u8> = answers
        .iter()
        .filter(|(_, answer)| matches!(answer, Answer::Written { .. }))
        .map(|(n, _)| *n)
        .collect();
    assert_eq!(winners.len(), 1, "{winners:?} won");
    let read = s.row("billing:1").await;
    assert_eq!((read.owner, read.attempt), (Some(rows::owner(winners[0])), 2));
}

pub(super) async fn a_lost_takeover_reply_is_recognised(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let replacement = rows::takeover(&s.row("billing:1").await, 2);
    let fence = written(s.replace(&replacement).await);
    let before = at_rest(s.row("billing:1").await);
    assert_eq!(written(s.replace(&replacement).await), fence);
    assert_eq!(at_rest(s.row("billing:1").await), before);
}

pub(super) async fn a_takeover_that_arrives_again_after_its_end_is_not_taken_for_a_new_one(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let replacement = rows::takeover(&s.row("billing:1").await, 2);
    let fence = written(s.replace(&replacement).await);
    written(s.finish("billing:1", 2, fence, rows::completed(Some("2"))).await);
    assert_eq!(found(s.replace(&replacement).await).status, Status::Completed);
}

pub(super) async fn a_heartbeat_defeats_a_takeover(s: &Subject) {
    let fence = s.stale_claim("billing:1", 1).await;
    let stale = s.row("billing:1").await;
    s.renew("billing:1", 1, fence, LEASE).await;
    let met = found(s.replace(&rows::takeover(&stale, 2)).await);
    assert_eq!(met.owner, Some(rows::owner(1)));
    assert!(met.lease_until > Some(met.now));
}

pub(super) async fn a_completion_defeats_a_takeover(s: &Subject) {
    let fence = s.stale_claim("billing:1", 1).await;
    let stale = s.row("billing:1").await;
    written(s.finish("billing:1", 1, fence, rows::completed(Some("1"))).await);
    let met = found(s.replace(&rows::takeover(&stale, 2)).await);
    assert_eq!((met.status, met.result.as_deref()), (Status::Completed, Some("1")));
}

pub(super) async fn a_row_that_is_gone_cannot_be_replaced(s: &Subject) {
    s.claim("billing:1", 1).await;
    let read = s.row("billing:1").await;
    let elsewhere = Replace { key: "billing:2".into(), ..rows::takeover(&read, 2) };
    assert_eq!(s.replace(&elsewhere).await, Answer::Gone);
    assert_eq!(s.read("billing:2").await, None);
}

pub(super) async fn each_part_of_the_expected_version_counts(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let read = s.row("billing:1").await;
    let right = read.version();
    let wrong = [
        Version { status: Status::NeedsReview, ..right.clone() },
        Version { owner: Some(rows::owner(7)), ..right.clone() },
        Version { owner: None, ..right.clone() },
        Version { fence: right.fence + 1, ..right.clone() },
        Version { lease_until: Some(2), ..right.clone() },
        Version { lease_until: None, ..right.clone() },
        Version { created_at: right.created_at - 1_000_000, ..right.clone() },
    ];
    for expected in wrong {
        let met = found(s.replace(&Replace { expected, ..rows::takeover(&read, 2) }).await);
        assert_eq!(at_rest(met), at_rest(read.clone()));
    }
    written(s.replace(&rows::takeover(&read, 2)).await);
}

pub(super) async fn an_expected_null_is_met_by_null_alone(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    let read = s.row("billing:1").await;
    let right = read.version();
    assert_eq!((&right.owner, right.lease_until), (&None, None));
    for expected in [
        Version { owner: Some(String::new()), ..right.clone() },
        Version { lease_until: Some(0), ..right.clone() },
    ] {
        found(s.replace(&Replace { expected, ..rows::takeover(&read, 2) }).await);
    }
    written(s.replace(&rows::takeover(&read, 2)).await);
}

pub(super) async fn a_new_life_of_a_key_has_a_new_birth(s: &Subject) {
    s.claim("billing:1", 1).await;
    s.raw.age("billing:1", rows::HOUR).await;
    let old = s.row("billing:1").await;
    written(s.replace(&Replace { renew_birth: false, ..rows::takeover(&old, 2) }).await);
    let same = s.row("billing:1").await;
    assert_eq!(same.created_at, old.created_at);
    written(s.replace(&Replace { renew_birth: true, ..rows::takeover(&same, 3) }).await);
    let reborn = s.row("billing:1").await;
    assert!(reborn.now - reborn.created_at < 60_000_000, "{reborn:?}");
}

pub(super) async fn a_replaced_row_keeps_nothing_of_the_old_one(s: &Subject) {
    let row = NewRow {
        fingerprint: Some("ab".repeat(32)),
        result: Some("1".to_owned()),
        error: Some("old".to_owned()),
        expires: Moment::In(rows::HOUR),
        alerted: Moment::At(5),
        ..rows::in_state(Status::Completed, 1)
    };
    written(s.insert("billing:1", row).await);
    let old = s.row("billing:1").await;
    let replacement = Replace { row: rows::claim(2), ..rows::takeover(&old, 2) };
    written(s.replace(&replacement).await);
    let read = s.row("billing:1").await;
    assert_eq!((&read.fingerprint, &read.result, &read.error), (&None, &None, &None));
    assert_eq!((read.expires_at, read.alerted_at, read.completed_at), (None, None, None));
}

pub(super) async fn a_replacement_by_a_completion_has_its_moment(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    let read = s.row("billing:1").await;
    written(s.replace(&rows::restated(&read, Status::Completed)).await);
    let completed = s.row("billing:1").await;
    assert!(completed.completed_at.is_some());
    written(s.replace(&rows::restated(&completed, Status::Released)).await);
    assert_eq!(s.row("billing:1").await.completed_at, None);
}

pub(super) async fn a_flag_for_review_raises_no_fence(s: &Subject) {
    let fence = s.stale_claim("billing:1", 1).await;
    let stale = s.row("billing:1").await;
    assert_eq!(written(s.replace(&rows::restated(&stale, Status::NeedsReview)).await), fence);
    let read = s.row("billing:1").await;
    assert_eq!((read.status, read.fence, read.owner), (Status::NeedsReview, fence, Some(rows::owner(1))));
}

pub(super) async fn a_heartbeat_and_a_takeover_have_one_winner(s: &Subject) {
    for round in 0..16 {
        let key = format!("billing:{round}");
        let fence = s.stale_claim(&key, 1).await;
        let replacement = rows::takeover(&s.row(&key).await, 2);
        let renew = [Renew { key: key.as_str().into(), owner: rows::owner(1), fence, lease: LEASE }];
        let (holder, heir) = (s.store.clone(), s.store.clone());
        let renewed = spawn(async move {
            loop {
                match answered(|| holder.renew(&renew)).await[0] {
                    Renewal::Renewed => return true,
                    Renewal::Lost => return false,
                    Renewal::Skipped => {}
                }
            }
        });
        let replaced = spawn(async move { answered(|| heir.replace(&replacement)).await });
        let (renewed, replaced) = (renewed.await.expect("no panic"), replaced.await.expect("no panic"));
        assert_eq!(renewed, !matches!(replaced, Answer::Written { .. }), "{replaced:?}");
    }
}

pub(super) async fn a_completion_and_a_takeover_have_one_winner(s: &Subject) {
    for round in 0..16 {
        let key = format!("billing:{round}");
        let fence = s.stale_claim(&key, 1).await;
        let replacement = rows::takeover(&s.row(&key).await, 2);
        let finish = [subject::finish(&key, 1, fence, rows::completed(Some("1")))];
        let (holder, heir) = (s.store.clone(), s.store.clone());
        let finished = spawn(async move { answered(|| holder.finish(&finish)).await.remove(0) });
        let replaced = spawn(async move { answered(|| heir.replace(&replacement)).await });
        let (finished, replaced) = (finished.await.expect("no panic"), replaced.await.expect("no panic"));
        let completed = matches!(finished, Answer::Written { .. });
        assert_eq!(completed, !matches!(replaced, Answer::Written { .. }), "{finished:?} {replaced:?}");
        let read = s.row(&key).await;
        assert_eq!(
            (read.status == Status::Completed, read.owner == Some(rows::owner(1))),
            (completed, completed)
        );
    }
}

pub(super) async fn a_row_without_an_owner_is_replaced_by_its_version(s: &Subject) {
    s.claim("billing:1", 1).await;
    s.raw.set("billing:1", Column::Owner(None)).await;
    let read = s.row("billing:1").await;
    assert_eq!(read.owner, None);
    written(s.replace(&rows::restated(&read, Status::NeedsReview)).await);
    assert_eq!(s.row("billing:1").await.status, Status::NeedsReview);
}
