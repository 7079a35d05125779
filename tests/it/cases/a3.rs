//! Values that contain the separator: each tuple has a key of its own, each value stands where it belongs.

use std::collections::HashSet;

use idem_runtime::{Error, KeyPart, idempotent};

use super::{
    call::{executed, replayed},
    site::{Site, Worker},
};

#[idempotent(key = "a3:<a>:<b>", idem = w.idem)]
async fn pair(w: &Worker, a: &str, b: &str) -> Result<(String, String), Error> {
    w.effect("pair");
    Ok((a.to_owned(), b.to_owned()))
}

const TUPLES: &[(&str, &str)] = &[
    ("1:2", "3"),
    ("1", "2:3"),
    ("1%3A2", "3"),
    ("1", "2%3A3"),
    ("1%253A2", "3"),
    ("1:", "3"),
    ("1", ":3"),
    (":", ":"),
    ("::", "1"),
    ("1", "::"),
    ("%", "1"),
    ("%%", "1"),
    ("%3", "A"),
    ("%3A", "1"),
    ("%3a", "1"),
    ("\\", "1"),
    ("\\\\", "1"),
    ("\\:", "1"),
    ("<b>", "x"),
    ("<a>", "<b>"),
    ("<b>", "<a>"),
    ("<<", ">>"),
    ("{a}", "{b}"),
    ("$1", "?1"),
    ("x|y", "z"),
    ("x", "y|z"),
    ("x#y", "z"),
    ("x", "y#z"),
    ("x/y", "z"),
    ("x%2Fy", "z"),
    ("ns%:x", "y"),
    ("x%#y", "z"),
    ("1", "3 "),
    (" 1", "3"),
    ("1 ", "3"),
    ("1\t", "3"),
    ("1\n", "3"),
    ("1\\n", "3"),
    ("1\0", "3"),
    ("1\\0", "3"),
    ("1%00", "3"),
    ("1\u{a0}", "3"),
    ("1\u{200b}", "3"),
    ("1\u{feff}", "3"),
    ("a", "A"),
    ("A", "a"),
    ("é", "1"),
    ("e\u{301}", "1"),
    ("ß", "1"),
    ("ss", "1"),
    ("'", "\""),
    ("1'; DROP TABLE idempotency_keys; --", "1"),
    ("1,2", "3"),
    ("01", "3"),
    ("١", "3"),
];

pub(super) async fn a3_each_tuple_has_a_key_of_its_own(site: &Site) {
    let (first, second) = (site.worker().await, site.worker().await);
    for &(a, b) in TUPLES {
        assert_eq!(executed(pair(&first, a, b)).await, (a.to_owned(), b.to_owned()));
    }
    for &(a, b) in TUPLES {
        assert_eq!(replayed(pair(&first, a, b)).await, (a.to_owned(), b.to_owned()));
        assert_eq!(replayed(pair(&second, a, b)).await, (a.to_owned(), b.to_owned()));
    }
    assert_eq!(site.ledger.total(), TUPLES.len());
}

pub(super) async fn a3_a_plain_key_stays_readable(site: &Site) {
    let w = site.worker().await;
    for (a, b, key) in [
        ("1", "3", "a3:1:3"),
        ("2024-06", "müller@example.org", "a3:2024-06:müller@example.org"),
        ("a_b", "x.y+z=1,2", "a3:a_b:x.y+z=1,2"),
        ("1:2", "50%", "a3:1%3A2:50%25"),
    ] {
        executed(pair(&w, a, b)).await;
        assert_eq!(w.row(key).await.key, key);
    }
}

#[idempotent(key = "a3-mixed:<a>|<b>#x<c>y", idem = w.idem)]
fn mixed(w: &Worker, a: &str, b: &str, c: &str) -> Result<String, Error> {
    w.effect("mixed");
    Ok([a, b, c].concat())
}

/// Every tuple of short texts over the characters that mean something in some key.
pub(super) async fn a3_every_separator_is_kept_out_of_every_place(site: &Site) {
    let w = site.worker().await;
    let texts = ["x", ":", "|", "#", "%", "/", "xy", "%7C"];
    let mut tuples = HashSet::new();
    for a in texts {
        for b in texts {
            for c in ["x", "|", "#xy", "y#x"] {
                tuples.insert((a, b, c));
                let value = mixed(&w, a, b, c).expect("a value");
                assert_eq!(value, [a, b, c].concat(), "another tuple's value");
                assert_eq!(site.effects("mixed"), tuples.len(), "another tuple's key");
            }
        }
    }
    for &(a, b, c) in &tuples {
        mixed(&w, a, b, c).expect("a replay");
    }
    assert_eq!(site.effects("mixed"), tuples.len());
}

#[derive(KeyPart)]
struct Address {
    street: String,
    place: Place,
}

#[derive(KeyPart)]
struct Place {
    code: u32,
    town: String,
}

fn address(street: &str, code: u32, town: &str) -> Address {
    Address { street: street.to_owned(), place: Place { code, town: town.to_owned() } }
}

#[idempotent(key = "a3-address:<address>:<note>", idem = w.idem)]
async fn deliver(w: &Worker, address: Address, note: &str) -> Result<String, Error> {
    w.effect("deliver");
    Ok(format!("{}/{}/{}/{note}", address.street, address.place.code, address.place.town))
}

pub(super) async fn a3_fields_of_a_struct_are_kept_apart(site: &Site) {
    let w = site.worker().await;
    let tuples = [
        ("a,1", 1, "b", "n"),
        ("a", 1, "1,b", "n"),
        ("a", 1, "b:n", "n"),
        ("a", 1, "b", "n:n"),
        ("a%2C1", 1, "b", "n"),
        ("a,1%2Cb", 1, "b", "n"),
        ("a", 1, "b%2C", "n"),
        ("a", 1, "b,", "n"),
        ("a", 1, "b%252C", "n"),
        ("a", 11, "b", "n"),
    ];
    for (street, code, town, note) in tuples {
        let value = executed(deliver(&w, address(street, code, town), note)).await;
        assert_eq!(replayed(deliver(&w, address(street, code, town), note)).await, value);
    }
    assert_eq!(site.ledger.total(), tuples.len());
}

#[idempotent(key = "a3-outer:<id>", key_fn = outer_key, idem = w.idem)]
async fn outer(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect("outer");
    Ok(id.to_owned())
}

#[idempotent(key = "a3-about:<key>:<step>", idem = w.idem)]
async fn about(w: &Worker, key: &idem_runtime::Key, step: &str) -> Result<String, Error> {
    w.effect("about");
    Ok(format!("{key} {step}"))
}

pub(super) async fn a3_a_key_as_a_value_is_kept_whole(site: &Site) {
    let w = site.worker().await;
    let plain = outer_key("1").expect("a key");
    let tricky = outer_key("1:2").expect("a key");
    assert_eq!((plain.as_str(), tricky.as_str()), ("a3-outer:1", "a3-outer:1%3A2"));
    executed(outer(&w, "1:2")).await;
    assert_eq!(w.row(tricky.as_str()).await.key, "a3-outer:1%3A2");

    executed(about(&w, &plain, "2:x")).await;
    executed(about(&w, &tricky, "x")).await;
    assert_eq!(replayed(about(&w, &tricky, "x")).await, "a3-outer:1%3A2 x");
    assert_eq!(site.effects("about"), 2);
}
