//! Borrowed arguments: used across awaits, and gone right after the call.

use std::borrow::Cow;

use idem_runtime::{Error, idempotent};

use super::{is_send, memory};

#[idempotent(key = "dropped_arguments:text:<name>", idem = memory())]
async fn text(name: &str, note: Option<&str>) -> Result<usize, Error> {
    let before = name.len();
    tokio::task::yield_now().await;
    let between = note.map_or(0, str::len);
    tokio::task::yield_now().await;
    Ok(before + between + name.len())
}

#[idempotent(key = "dropped_arguments:cow:<name>", idem = memory())]
async fn cow(name: Cow<'_, str>, list: &[&str], out: &mut Vec<String>) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    out.push(name.into_owned());
    tokio::task::yield_now().await;
    Ok(list.len())
}

#[idempotent(key = "dropped_arguments:as_ref:<id>", idem = memory())]
async fn as_ref(id: u8, text: impl AsRef<str>) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    Ok(text.as_ref().len() + usize::from(id))
}

#[idempotent(key = "dropped_arguments:sync:<name>", idem = memory())]
fn sync(name: &str, out: &mut Vec<String>) -> Result<usize, Error> {
    out.push(name.to_owned());
    Ok(name.len())
}

#[tokio::test]
async fn b7_an_argument_may_be_dropped_right_after_the_call() {
    for _ in 0..2 {
        let (name, note) = (String::from("name"), String::from("note"));
        let called = is_send(text(&name, Some(&note))).await;
        drop((name, note));
        assert_eq!(called.expect("a length"), 12);
    }
}

#[tokio::test]
async fn b7_what_was_lent_is_given_back_by_a_replay_too() {
    let mut out = Vec::new();
    for _ in 0..2 {
        let (name, item) = (String::from("cow"), String::from("item"));
        let called = is_send(cow(Cow::Borrowed(&name), &[&item], &mut out)).await;
        out.push("between".to_owned());
        drop((name, item));
        assert_eq!(called.expect("a length"), 1);
    }
    assert_eq!(out, ["cow", "between", "between"]);
    let mut out = Vec::new();
    for _ in 0..2 {
        let name = String::from("sync");
        let called = sync(&name, &mut out);
        drop(name);
        assert_eq!(called.expect("a length"), 4);
    }
    assert_eq!(out, ["sync"]);
}

#[tokio::test]
async fn b7_a_temporary_lives_as_long_as_the_call() {
    for _ in 0..2 {
        assert_eq!(text(&String::from("gone"), Some(&"x".repeat(3))).await.expect("a length"), 11);
        assert_eq!(as_ref(1, &String::from("gone")).await.expect("a length"), 5);
    }
}

#[tokio::test]
async fn b7_a_future_that_was_never_awaited_gives_its_arguments_back() {
    let name = String::from("unawaited");
    let mut out = Vec::new();
    drop(cow(Cow::Borrowed(&name), &[], &mut out));
    drop(name);
    assert_eq!(out, [""; 0]);
}
