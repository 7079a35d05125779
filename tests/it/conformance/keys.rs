//! Keys are bytes.

use std::sync::Arc;

use super::{
    rows::{self, found, written},
    subject::{self, Subject},
};

/// Claims each key alone or all at once, completes them with their own number, and reads them back.
async fn are_distinct(s: &Subject, keys: &[String], at_once: bool) {
    let stored: Vec<Arc<str>> = keys.iter().map(|key| key.as_str().into()).collect();
    let mut fences = Vec::new();
    if at_once {
        let batch: Vec<_> = keys.iter().map(|key| rows::insert(key, rows::claim(1))).collect();
        fences.extend(s.store.insert(&batch).await.expect("answers").into_iter().map(written));
    } else {
        for key in keys {
            fences.push(s.claim(key, 1).await);
        }
    }
    let batch: Vec<_> = keys
        .iter()
        .zip(fences)
        .enumerate()
        .map(|(n, (key, fence))| subject::finish(key, 1, fence, rows::completed(Some(&n.to_string()))))
        .collect();
    for answer in s.store.finish(&batch).await.expect("answers") {
        written(answer);
    }
    for (n, record) in s.store.read(&stored).await.expect("answers").into_iter().enumerate() {
        let record = record.unwrap_or_else(|| panic!("no row for {:?}", keys[n]));
        assert_eq!((record.key.as_str(), record.result), (keys[n].as_str(), Some(n.to_string())));
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(found(s.insert(key, rows::claim(2)).await).result, Some(n.to_string()), "{key:?}");
    }
}

pub(super) async fn keys_that_only_a_collation_would_equate_are_distinct(s: &Subject) {
    let keys = [
        "acct:4qD3",
        "acct:4qd3",
        "ACCT:4QD3",
        "caf\u{e9}",
        "cafe\u{301}",
        "cafe",
        "stra\u{df}e",
        "strasse",
        "a",
        "a ",
        "a  ",
        "\u{ff41}",
        "\u{e6}",
        "ae",
        "I",
        "\u{131}",
        "i",
        "\u{130}",
        "k\u{200b}",
        "k",
        "2",
        "02",
        "2.0",
    ];
    are_distinct(s, &keys.map(ToOwned::to_owned), false).await;
}

pub(super) async fn keys_that_look_like_sql_are_text(s: &Subject) {
    let keys = [
        "'; DROP TABLE idempotency_keys; --",
        "a'b",
        "a\"b",
        "a\\b",
        "a\\\\b",
        "{a,b}",
        "{}",
        "NULL",
        "null",
        "%",
        "_",
        "$1",
        "?1",
        ":key",
        "{table}",
        "[1]",
        "a,b",
        "(a)",
        "\\x41",
        "\\u0041",
        "-1",
        "true",
        "0x10",
        "a\tb",
        "a\nb",
    ];
    are_distinct(s, &keys.map(ToOwned::to_owned), true).await;
}

pub(super) async fn keys_of_255_bytes_are_whole(s: &Subject) {
    let keys = [
        "x".repeat(255),
        format!("{}y", "x".repeat(254)),
        "x".repeat(254),
        // 63 characters of four bytes, one of three.
        format!("{}\u{20ac}", "\u{1f600}".repeat(63)),
        format!("{}\u{20ad}", "\u{1f600}".repeat(63)),
    ];
    assert_eq!(keys[3].len(), 255);
    are_distinct(s, &keys, false).await;
}
