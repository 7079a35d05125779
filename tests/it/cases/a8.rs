//! Keys longer than a column or an index holds run under their digest: never cut short, never silently not run.

use idem_runtime::{Error, ErrorKind, Resolution, Resolved, current, idempotent};

use super::{
    call::{Fault, executed, failed, refused, replayed},
    site::{Site, Worker},
};

/// What a row's key holds at most, in bytes.
const LIMIT: usize = 255;

#[idempotent(key = "a8:<text>", key_fn = echo_key, idem = w.idem)]
async fn echo(w: &Worker, text: &str) -> Result<String, Error> {
    w.effect("echo");
    Ok(text.to_owned())
}

async fn both_run_once(site: &Site, first: &str, second: &str) {
    let (w, other) = (site.worker().await, site.worker().await);
    for text in [first, second] {
        assert_eq!(executed(echo(&w, text)).await, text);
    }
    for text in [first, second] {
        assert_eq!(replayed(echo(&w, text)).await, text);
        assert_eq!(replayed(echo(&other, text)).await, text);
        let row = w.row(echo_key(text).expect("a key").as_str()).await;
        assert!(row.key.len() <= LIMIT, "{}", row.key);
        assert!(row.key.starts_with("a8:"), "its head stays readable: {}", row.key);
    }
    assert_eq!(site.ledger.total(), 2);
}

pub(super) async fn a8_keys_of_300_characters_are_distinct_and_idempotent(site: &Site) {
    let long = "x".repeat(300);
    both_run_once(site, &format!("{long}1"), &format!("{long}2")).await;
}

pub(super) async fn a8_keys_of_4000_bytes_are_distinct_and_idempotent(site: &Site) {
    let long: String = (0..1_333).map(|n| char::from_u32(0x4e00 + n).expect("a character")).collect();
    both_run_once(site, &format!("{long}1"), &format!("{long}2")).await;
}

pub(super) async fn a8_a_key_on_the_edge_is_whole_and_one_over_it_is_hashed(site: &Site) {
    let w = site.worker().await;
    let edge = "e".repeat(LIMIT - "a8:".len());
    let over = format!("{edge}e");
    for (text, hashed) in [(&edge, false), (&over, true)] {
        executed(echo(&w, text)).await;
        let row = w.row(&format!("a8:{text}")).await;
        assert_eq!(row.key.contains("%#"), hashed, "{}", row.key);
        assert!(row.key.len() <= LIMIT);
        assert_eq!(replayed(echo(&w, text)).await, *text);
    }

    // The namespace counts.
    let spaced = site.worker_by(|builder| builder.namespace("production")).await;
    executed(echo(&spaced, &edge)).await;
    let row = spaced.row(&format!("a8:{edge}")).await;
    assert!(row.key.starts_with("production%:a8:eee") && row.key.contains("%#"), "{}", row.key);
    assert!(row.key.len() <= LIMIT);
    replayed(echo(&spaced, &edge)).await;
    assert_eq!(site.ledger.total(), 3);
}

/// Whatever byte the cut falls on: inside a character, inside an escape.
pub(super) async fn a8_a_long_key_is_cut_between_characters(site: &Site) {
    let w = site.worker().await;
    let units = ["é", "漢", "🦀", " ", "%", "\u{a0}"];
    for unit in units {
        for before in 0..4 {
            let text = format!("{}{}", "x".repeat(before), unit.repeat(200));
            executed(echo(&w, &text)).await;
            let key = w.row(echo_key(text.as_str()).expect("a key").as_str()).await.key;
            let (head, digest) = key.rsplit_once("%#").expect("a digest");
            assert_eq!(digest.len(), 64);
            assert!(head.len() <= 189, "{head}");
            let tail = head.char_indices().rev().find(|(_, c)| *c == '%').map_or("", |(at, _)| &head[at..]);
            assert!(tail.is_empty() || tail.len() >= 3, "an escape is cut: {head}");
            assert_eq!(replayed(echo(&w, &text)).await, text);
        }
    }
    assert_eq!(site.ledger.total(), units.len() * 4);
}

#[idempotent(key = "a8-doubt:<text>", key_fn = doubt_key, idem = w.idem)]
async fn doubt(w: &Worker, text: &str) -> Result<String, Fault> {
    w.effect("doubt");
    if current().attempt() == 1 { Err(Fault::own("timed out")) } else { Ok(text.to_owned()) }
}

pub(super) async fn a8_a_long_key_is_looked_up_and_resolved_by_its_whole_text(site: &Site) {
    let w = site.worker().await;
    let text = "doubt ".repeat(100);
    let key = doubt_key(text.as_str()).expect("a key");
    failed(doubt(&w, &text)).await;
    let error = refused(ErrorKind::NeedsReview, doubt(&w, &text)).await.idem();
    assert_eq!(error.key(), Some(&key), "the whole key, not its digest");

    let resolved = w.idem.resolve(&key, Resolution::Retry).note("not in the ledger").await.expect("a look");
    assert!(matches!(resolved, Resolved::Changed { .. }), "{resolved:?}");
    assert_eq!(executed(doubt(&w, &text)).await, text);
    let stored = w.row(key.as_str()).await.key;
    assert_eq!(w.row(&stored).await.key, stored, "as it stands in the table");
    let forgotten = w.idem.forget(&stored).force().note("a test").await.expect("a look");
    assert!(matches!(forgotten, Resolved::Changed { .. }), "{forgotten:?}");
    assert_eq!(w.find(key.as_str()).await, None);
}
