//! Borrowed parameters, their lifetimes elided and named.

#![deny(rust_2018_idioms, elided_lifetimes_in_paths)]

use std::borrow::Cow;

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once};

struct Line<'a> {
    text: &'a str,
}

#[idempotent(key = "lifetimes:many:<name>", idem = memory())]
async fn many(
    name: &str,
    note: Option<&str>,
    line: &Line<'_>,
    cow: Cow<'_, str>,
    out: &mut Vec<u8>,
) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    out.push(1);
    Ok(name.len() + note.map_or(0, str::len) + line.text.len() + cow.len() + out.len())
}

#[idempotent(key = "lifetimes:named:<first>", idem = memory())]
async fn named<'a, 'b: 'a>(first: &'a str, second: &'b str) -> Result<String, Error> {
    tokio::task::yield_now().await;
    Ok(if first.is_empty() { second } else { first }.to_owned())
}

#[tokio::test]
async fn b7_borrowed_parameters_are_borrowed_for_the_call() {
    let line = Line { text: "line" };
    let mut out = Vec::new();
    let borrowed = is_send(many("a", Some("b"), &line, Cow::Borrowed("c"), &mut out)).await;
    assert_eq!(borrowed.expect("a sum"), 8);
    assert_eq!(out, [1]);
    assert_eq!(once(async || is_send(named("x", "y")).await).await, "x");
}
