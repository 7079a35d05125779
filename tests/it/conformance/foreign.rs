//! Rows that were not written by this library, or not by this version of it.

use std::time::Duration;

use idem_runtime::{
    __private::{Job, OnStale},
    record::{Decision, Record, Standing, Status, Terms, decide},
    store::{Moment, NewRow, Renewal},
};

use super::{
    raw::{Column, quoted},
    rows::{self, HOUR, at_rest, found, written},
    subject::Subject,
};

static JOB: Job =
    Job::lock_first("charge", &["billing:", ":", ""], "app", "app.rs", 1).on_stale(OnStale::Retry);

pub(super) fn terms(job: &Job) -> Terms<'_> {
    Terms { job, fingerprint: None, foreign_stale_after: Duration::from_mins(15), under: None }
}

pub(super) async fn a_row_with_only_a_key_is_a_claim_without_owner(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    let read = s.row("billing:1").await;
    assert_eq!(read.status, Status::Processing);
    let bare = NewRow { status: Status::Processing, attempt: read.attempt, takeovers: 0, ..nothing() };
    assert_eq!(format!("{:?}", rows::again(&read)), format!("{bare:?}"));
    assert!(read.now - read.created_at < 60_000_000, "{read:?}");
    assert_eq!(at_rest(found(s.insert("billing:1", rows::claim(2)).await)), at_rest(read));
}

fn nothing() -> NewRow {
    NewRow {
        job: None,
        template: None,
        mode: None,
        on_stale: None,
        owner: None,
        worker: None,
        lease: Moment::Never,
        ..rows::claim(0)
    }
}

pub(super) async fn a_claim_without_owner_is_busy_until_it_is_old_and_then_for_a_person(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    let young = s.row("billing:1").await;
    let Decision::Busy { retry_after: Some(left) } = decide(Some(&young), young.now, &terms(&JOB)) else {
        panic!("{young:?}");
    };
    assert!(left <= Duration::from_mins(15) && left > Duration::from_mins(14), "{left:?}");

    s.raw.age("billing:1", Duration::from_secs(901)).await;
    let old = s.row("billing:1").await;
    assert_eq!(decide(Some(&old), old.now, &terms(&JOB)), Decision::Flag);
    written(s.replace(&rows::restated(&old, Status::NeedsReview)).await);
}

pub(super) async fn two_claims_without_owner_are_told_apart_by_their_birth(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    let first = s.row("billing:1").await;
    s.raw.age("billing:1", HOUR).await;
    if s.row("billing:1").await.created_at == first.created_at {
        // In memory it is the clock that moved: a second claim is one that was made again.
        let version = first.version();
        assert!(s.store.forget("billing:1", &version, &super::fence::forgotten()).await.expect("a reply"));
        s.raw.begin_by_hand("billing:1").await;
    }
    found(s.replace(&rows::restated(&first, Status::NeedsReview)).await);
    let second = s.row("billing:1").await;
    assert_eq!(second.status, Status::Processing);
    written(s.replace(&rows::restated(&second, Status::NeedsReview)).await);
}

pub(super) async fn a_completion_by_hand_counts(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    s.raw.complete_by_hand("billing:1").await;
    let read = s.row("billing:1").await;
    assert_eq!((&read.status, &read.result, read.expires_at), (&Status::Completed, &None, None));
    let age = read.now - read.completed_at.expect("a moment");
    assert!((-1_000_000..60_000_000).contains(&age), "{age}");
    assert_eq!(decide(Some(&read), read.now, &terms(&JOB)), Decision::Replay);
    assert_eq!(found(s.insert("billing:1", rows::claim(2)).await).status, Status::Completed);
}

pub(super) async fn a_claim_of_ours_can_be_completed_by_hand(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    s.raw.complete_by_hand("billing:1").await;
    let read = s.row("billing:1").await;
    assert_eq!((&read.status, read.owner.as_deref()), (&Status::Completed, Some(rows::owner(1).as_str())));
    assert_eq!(s.renew("billing:1", 1, fence, HOUR).await, Renewal::Lost);
    found(s.finish("billing:1", 1, fence, rows::failed("no")).await);
}

pub(super) async fn an_unknown_status_is_nobodys_to_touch(s: &Subject) {
    for word in ["paused", "COMPLETED", "completed ", ""] {
        let key = format!("billing:{word}");
        let fence = s.stale_claim(&key, 1).await;
        s.raw.set(&key, Column::Status(word)).await;
        s.raw.set(&key, Column::ExpiresAt(Some(rows::PAST))).await;
        let before = s.row(&key).await;
        assert_eq!(before.status, Status::Other(word.to_owned()));
        assert_eq!(decide(Some(&before), before.now, &terms(&JOB)), Decision::Busy { retry_after: None });

        found(s.insert(&key, rows::claim(1)).await);
        found(s.insert(&key, rows::claim(2)).await);
        for ending in [rows::completed(None), rows::failed("no"), rows::released(None), rows::held(None)] {
            found(s.finish(&key, 1, fence, ending).await);
        }
        assert_eq!(s.renew(&key, 1, fence, HOUR).await, Renewal::Lost);
        assert_eq!(s.store.purge(10).await.expect("a purge"), 0);
        assert_eq!(at_rest(s.row(&key).await), at_rest(before));
    }
}

pub(super) async fn an_unknown_policy_in_a_row_is_the_strictest(s: &Subject) {
    s.stale_claim("billing:1", 1).await;
    let retries = s.row("billing:1").await;
    let decided = |record: &Record| decide(Some(record), record.now, &terms(&JOB));
    assert_eq!(decided(&retries), Decision::Run(Standing::Stale));
    for word in ["alert", "probe", "a word of tomorrow"] {
        s.raw.set("billing:1", Column::OnStale(Some(word))).await;
        assert_eq!(decided(&s.row("billing:1").await), Decision::Flag, "{word}");
    }
    s.raw.set("billing:1", Column::OnStale(None)).await;
    assert_eq!(decided(&s.row("billing:1").await), Decision::Run(Standing::Stale));
}

pub(super) async fn moments_written_by_hand_are_read(s: &Subject) {
    // 2024-06-01 12:34:56 UTC
    let second = 1_717_245_296_000_000;
    let spellings: &[(&str, i64)] = match s.store.name() {
        "sqlite" => &[
            ("2024-06-01 12:34:56", 0),
            ("2024-06-01T12:34:56", 0),
            ("2024-06-01 12:34:56.25", 250_000),
            ("2024-06-01T12:34:56.789123Z", 789_000), // SQLite keeps milliseconds
        ],
        // The session's time zone counts, which is UTC here.
        "mysql" => &[
            ("2024-06-01 12:34:56", 0),
            ("2024-06-01T12:34:56", 0),
            ("2024-06-01 12:34:56.25", 250_000),
            ("2024-06-01 12:34:56.789123", 789_123),
        ],
        _ => &[
            ("2024-06-01 12:34:56+00", 0),
            ("2024-06-01 14:34:56.25+02", 250_000),
            ("2024-06-01 18:04:56.789123+05:30", 789_123),
        ],
    };
    for (n, (text, micros)) in spellings.iter().enumerate() {
        let key = format!("billing:{n}");
        s.raw
            .execute(format!(
                "INSERT INTO idempotency_keys (\"key\", status, created_at, completed_at)
                 VALUES ({0}, 'completed', {1}, {1})",
                quoted(&key),
                quoted(text)
            ))
            .await;
        let read = s.row(&key).await;
        assert_eq!((read.created_at, read.completed_at), (second + micros, Some(second + micros)), "{text}");
        written(s.replace(&rows::takeover(&read, 1)).await);
    }
}

pub(super) async fn the_table_is_as_it_is_documented(s: &Subject) {
    s.raw.begin_by_hand("billing:1").await;
    let row = "FROM idempotency_keys WHERE \"key\" = 'billing:1'";
    for column in [
        "job",
        "template",
        "mode",
        "on_stale",
        "owner",
        "lease_until",
        "fingerprint",
        "result",
        "error",
        "worker",
        "expires_at",
        "alerted_at",
        "completed_at",
    ] {
        assert_eq!(s.raw.number(&format!("SELECT count(*) {row} AND {column} IS NULL")).await, 1, "{column}");
    }
    for column in ["key", "status", "created_at", "fence", "attempt", "takeovers"] {
        assert_eq!(s.raw.number(&format!("SELECT count(\"{column}\") {row}")).await, 1, "{column}");
    }
    assert_eq!(s.raw.text(&format!("SELECT status {row}")).await, "processing");
}

pub(super) async fn what_a_claim_leaves_in_the_table_is_readable_by_hand(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    written(s.finish("billing:1", 1, fence, rows::completed(Some("{\"a\":1}"))).await);
    let row = "FROM idempotency_keys WHERE \"key\" = 'billing:1'";
    assert_eq!(s.raw.text(&format!("SELECT status {row}")).await, "completed");
    assert_eq!(s.raw.text(&format!("SELECT owner {row}")).await, rows::owner(1));
    assert_eq!(s.raw.text(&format!("SELECT result {row}")).await, "{\"a\":1}");
    assert_eq!(s.raw.number(&format!("SELECT fence {row}")).await, fence);
    // Both moments mean what CURRENT_TIMESTAMP means.
    let fresh =
        format!("created_at <= {0} AND completed_at <= {0} AND completed_at >= created_at", s.raw.now());
    let count = format!("SELECT count(*) FROM idempotency_keys WHERE \"key\" = 'billing:1' AND {fresh}");
    assert_eq!(s.raw.number(&count).await, 1);
}
