//! Borrowed parameters: elided, named, in impls, higher-ranked.

#![deny(rust_2018_idioms)]

use std::{borrow::Cow, future::Future};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once};

struct Line<'a> {
    text: &'a str,
}

impl Line<'_> {
    #[idempotent(key = "lifetimes:elided_impl:<self.text>", idem = memory())]
    async fn len(&self) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(self.text.len())
    }
}

impl<'a> Line<'a> {
    #[idempotent(key = "lifetimes:named_impl:<self.text>:<other>", idem = memory())]
    async fn longer(&self, other: &'a str) -> Result<bool, Error> {
        tokio::task::yield_now().await;
        Ok(self.text.len() > other.len())
    }
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

#[idempotent(key = "lifetimes:higher:<id>", idem = memory())]
async fn higher(id: u8, pick: impl for<'a> Fn(&'a str) -> &'a str) -> Result<String, Error> {
    let _ = id;
    Ok(pick("abc").to_owned())
}

#[allow(clippy::manual_async_fn)]
fn spawned(name: String) -> impl Future<Output = Result<String, Error>> + Send + 'static {
    async move { named(&name, "").await }
}

#[tokio::test]
async fn borrowed_parameters_work() {
    let line = Line { text: "line" };
    assert_eq!(once(async || is_send(line.len()).await).await, 4);
    assert!(once(async || is_send(line.longer("abc")).await).await);
    let mut out = Vec::new();
    let borrowed = is_send(many("a", Some("b"), &line, Cow::Borrowed("c"), &mut out)).await;
    assert_eq!(borrowed.expect("a sum"), 8);
    assert_eq!(out, [1]);
    let name = String::from("x");
    let called = named(&name, "y").await;
    drop(name);
    assert_eq!(called.expect("a name"), "x");
    assert_eq!(once(async || higher(1, |text| &text[1..]).await).await, "bc");
    assert_eq!(tokio::spawn(spawned("z".to_owned())).await.expect("a task").expect("a name"), "z");
}
