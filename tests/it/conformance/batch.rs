//! Many items at once are many single ones.

use std::sync::Arc;

use idem_runtime::{
    record::Status,
    store::{Answer, Ending, Finish, Insert, NewRow, Renew},
};

use super::{
    rows::{self, Shape, found, gist, shape, written},
    subject::{self, Subject},
};

pub(super) async fn an_empty_batch_is_answered_with_nothing(s: &Subject) {
    assert!(s.store.insert(&[]).await.expect("an answer").is_empty());
    assert!(s.store.finish(&[]).await.expect("an answer").is_empty());
    assert!(s.store.renew(&[]).await.expect("an answer").is_empty());
    assert!(s.store.read(&[]).await.expect("an answer").is_empty());
}

pub(super) async fn a_batch_mixes_absent_and_present_keys(s: &Subject) {
    s.claim("billing:2", 1).await;
    let ended = s.claim("billing:4", 1).await;
    s.finish("billing:4", 1, ended, rows::completed(Some("4"))).await;
    let batch: Vec<_> = (1..=5).map(|n| rows::insert(&format!("billing:{n}"), rows::claim(2))).collect();
    for _ in 0..2 {
        // The second time is the same batch after a lost reply.
        let mut answers = s.store.insert(&batch).await.expect("answers");
        assert_eq!(found(answers.remove(3)).result.as_deref(), Some("4"));
        assert_eq!(found(answers.remove(1)).owner, Some(rows::owner(1)));
        for answer in answers {
            written(answer);
        }
    }
    for n in [1, 3, 5] {
        assert_eq!(s.row(&format!("billing:{n}")).await.owner, Some(rows::owner(2)));
    }
}

pub(super) async fn answers_come_in_the_order_of_the_batch(s: &Subject) {
    // In no order that a database would choose by itself.
    let order = [7_u8, 0, 12, 3, 19, 1, 15, 9, 4, 18, 2, 11, 6, 17, 5, 13, 8, 16, 10, 14];
    let key = |n: u8| format!("{}:{n}", if n.is_multiple_of(2) { "Ä" } else { "a" });

    let batch: Vec<_> = order.iter().map(|n| rows::insert(&key(*n), rows::claim(*n))).collect();
    let fences: Vec<i64> = s.store.insert(&batch).await.expect("answers").into_iter().map(written).collect();
    for (n, fence) in order.iter().zip(&fences) {
        let read = s.row(&key(*n)).await;
        assert_eq!((read.owner, read.fence), (Some(rows::owner(*n)), *fence));
    }

    let batch: Vec<Finish> = order
        .iter()
        .zip(&fences)
        .map(|(n, fence)| subject::finish(&key(*n), *n, *fence, rows::completed(Some(&n.to_string()))))
        .collect();
    for (fence, answer) in fences.iter().zip(s.store.finish(&batch).await.expect("answers")) {
        assert_eq!(written(answer), *fence);
    }

    let keys: Vec<Arc<str>> = order.iter().rev().map(|n| key(*n).into()).collect();
    let read = s.store.read(&keys).await.expect("answers");
    for (n, record) in order.iter().rev().zip(read) {
        assert_eq!(record.expect("a row").result, Some(n.to_string()));
    }

    let batch: Vec<_> = order.iter().map(|n| rows::insert(&key(*n), rows::claim(99))).collect();
    for (n, answer) in order.iter().zip(s.store.insert(&batch).await.expect("answers")) {
        assert_eq!(found(answer).result, Some(n.to_string()));
    }
}

pub(super) async fn reading_leaves_out_no_key(s: &Subject) {
    s.claim("b", 1).await;
    let keys: Vec<Arc<str>> = ["c", "b", "a"].map(Into::into).to_vec();
    let read = s.store.read(&keys).await.expect("answers");
    let keys: Vec<_> = read.into_iter().map(|record| record.map(|record| record.key)).collect();
    assert_eq!(keys, [None, Some("b".to_owned()), None]);
}

pub(super) async fn a_thousand_items_are_answered_one_by_one(s: &Subject) {
    let batch: Vec<_> = (0..1000).map(|n| rows::insert(&format!("billing:{n}"), rows::claim(1))).collect();
    let fences: Vec<i64> = s.store.insert(&batch).await.expect("answers").into_iter().map(written).collect();
    let result = "x".repeat(2_000);
    let finishes: Vec<_> = (0..1000)
        .zip(&fences)
        .map(|(n, fence)| {
            // Every tenth has the wrong owner.
            let by = if n % 10 == 0 { 2 } else { 1 };
            subject::finish(
                &format!("billing:{n}"),
                by,
                *fence,
                rows::completed(Some(&format!("\"{result}{n}\""))),
            )
        })
        .collect();
    for (n, answer) in s.store.finish(&finishes).await.expect("answers").into_iter().enumerate() {
        assert_eq!(matches!(answer, Answer::Written { .. }), n % 10 != 0, "{n}");
    }
    let keys: Vec<Arc<str>> = batch.iter().map(|item| item.key.clone()).collect();
    for (n, record) in s.store.read(&keys).await.expect("answers").into_iter().enumerate() {
        let wanted = (n % 10 != 0).then(|| format!("\"{result}{n}\""));
        assert!(record.expect("a row").result == wanted, "{n}");
    }
}

pub(super) async fn a_batch_holds_endings_of_every_kind(s: &Subject) {
    let endings =
        [rows::released(Some("r")), rows::completed(Some("1")), rows::held(Some("h")), rows::failed("f")];
    let mut batch = Vec::new();
    for (n, ending) in (1..).zip(endings) {
        let key = format!("billing:{n}");
        let fence = s.claim(&key, n).await;
        batch.push(subject::finish(&key, n, fence, ending));
    }
    batch.push(subject::finish("absent", 1, 1, rows::completed(None)));
    let answers = s.store.finish(&batch).await.expect("answers");
    assert_eq!(answers[4], Answer::Gone);
    for (finish, answer) in batch.iter().zip(&answers).take(4) {
        let raised = i64::from(matches!(finish.ending, Ending::Held { .. }));
        assert_eq!(answer, &Answer::Written { fence: finish.fence + raised });
        let read = s.row(&finish.key).await;
        assert_eq!(read.status, finish.ending.status());
        assert_eq!(read.completed_at.is_some(), read.status == Status::Completed);
    }
}

const STATES: [&str; 8] =
    ["absent", "processing", "stale", "completed", "failed", "released", "needs_review", "paused"];

/// A row of owner 1 in a state; its fence.
async fn put(s: &Subject, key: &str, state: &str) -> i64 {
    match state {
        "absent" => 1,
        "stale" => s.stale_claim(key, 1).await,
        word => written(s.insert(key, rows::in_state(Status::from(word), 1)).await),
    }
}

/// One of every state for each of `calls`, under keys of its own.
async fn states(s: &Subject, prefix: &str, calls: usize) -> Vec<(String, i64, usize)> {
    let mut put_so_far = Vec::new();
    for call in 0..calls {
        for state in STATES {
            let key = format!("{prefix}:{call}:{state}");
            let fence = put(s, &key, state).await;
            put_so_far.push((key, fence, call));
        }
    }
    put_so_far
}

/// What the keys hold now.
async fn outcome(s: &Subject, keys: impl IntoIterator<Item = Arc<str>>) -> Vec<Option<Shape>> {
    let keys: Vec<_> = keys.into_iter().collect();
    s.store.read(&keys).await.expect("answers").iter().map(|record| record.as_ref().map(shape)).collect()
}

pub(super) async fn one_insert_and_many_answer_alike(s: &Subject) {
    let calls: [fn() -> NewRow; 3] =
        [|| rows::claim(1), || rows::claim(2), || rows::in_state(Status::Completed, 2)];
    let batch = async |prefix: &str| -> Vec<Insert> {
        let put = states(s, prefix, calls.len()).await;
        put.into_iter().map(|(key, _, call)| rows::insert(&key, calls[call]())).collect()
    };
    let (single, many) = (batch("one").await, batch("many").await);
    let mut one_by_one = Vec::new();
    for item in &single {
        one_by_one.extend(s.store.insert(std::slice::from_ref(item)).await.expect("an answer"));
    }
    let at_once = s.store.insert(&many).await.expect("answers");
    assert_eq!(one_by_one.iter().map(gist).collect::<Vec<_>>(), at_once.iter().map(gist).collect::<Vec<_>>());
    let keys = |batch: Vec<Insert>| batch.into_iter().map(|item| item.key);
    assert_eq!(outcome(s, keys(single)).await, outcome(s, keys(many)).await);
}

pub(super) async fn one_ending_and_many_answer_alike(s: &Subject) {
    let calls: [fn() -> Ending; 5] = [
        || rows::completed(Some("1")),
        || rows::failed("no"),
        || rows::released(Some("no")),
        || Ending::Released { error: None, purge_after: Some(rows::HOUR), withdrawn: true },
        || rows::held(None),
    ];
    let batch = async |prefix: &str| -> Vec<Finish> {
        let put = states(s, prefix, calls.len()).await;
        put.into_iter().map(|(key, fence, call)| subject::finish(&key, 1, fence, calls[call]())).collect()
    };
    let (single, many) = (batch("one").await, batch("many").await);
    let mut one_by_one = Vec::new();
    for item in &single {
        one_by_one.extend(s.store.finish(std::slice::from_ref(item)).await.expect("an answer"));
    }
    let at_once = s.store.finish(&many).await.expect("answers");
    assert_eq!(one_by_one.iter().map(gist).collect::<Vec<_>>(), at_once.iter().map(gist).collect::<Vec<_>>());
    let keys = |batch: Vec<Finish>| batch.into_iter().map(|item| item.key);
    assert_eq!(outcome(s, keys(single)).await, outcome(s, keys(many)).await);
}

pub(super) async fn one_heartbeat_and_many_answer_alike(s: &Subject) {
    let batch = async |prefix: &str| -> Vec<Renew> {
        let put = states(s, prefix, 2).await;
        put.into_iter()
            .map(|(key, fence, call)| {
                let owner = if call == 0 { rows::owner(1) } else { rows::owner(2) };
                Renew { key: key.into(), owner, fence, lease: rows::LEASE }
            })
            .collect()
    };
    let (single, many) = (batch("one").await, batch("many").await);
    let mut one_by_one = Vec::new();
    for item in &single {
        one_by_one.extend(s.store.renew(std::slice::from_ref(item)).await.expect("an answer"));
    }
    assert_eq!(one_by_one, s.store.renew(&many).await.expect("answers"));
    let keys = |batch: Vec<Renew>| batch.into_iter().map(|item| item.key);
    assert_eq!(outcome(s, keys(single)).await, outcome(s, keys(many)).await);
}
