//! A scope whose `Ok`, `Err`, `Some` and `None` are functions and constants of the user's own.

#![allow(non_snake_case, non_upper_case_globals, dead_code)]

use std::result::Result as StdResult;

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

struct Answer(u8);

fn Ok(number: u8) -> Answer {
    Answer(number)
}

fn Err(number: u8) -> Answer {
    Answer(number + 100)
}

fn Some(number: u8) -> Answer {
    Answer(number + 50)
}

const None: u8 = 9;

struct Result;

struct Option;

struct Vec;

struct Box;

struct String;

struct Default;

trait Into {}

trait From {}

trait Send {}

#[idempotent(key = "own_results:async:<id>", idem = memory())]
async fn job(id: u8) -> StdResult<u8, Error> {
    tokio::task::yield_now().await;
    let (Answer(ok), Answer(err), Answer(some)) = (Ok(id), Err(id), Some(id));
    StdResult::Ok(ok + err + some + None)
}

#[idempotent(key = "own_results:sync:<id>", on_error = judge, idem = memory())]
fn sync(id: u8) -> StdResult<u8, Error> {
    let Answer(ok) = Ok(id);
    StdResult::Ok(ok)
}

fn judge(_: &Error) -> idem_runtime::OnError {
    idem_runtime::OnError::Release
}

#[idempotent(key = "own_results:boxed:<id>", idem = memory())]
fn boxed(id: u8) -> std::pin::Pin<std::boxed::Box<dyn Future<Output = StdResult<u8, Error>>>> {
    std::boxed::Box::pin(async move { StdResult::Ok(id) })
}

use std::future::Future;

#[tokio::test]
async fn b2_the_words_of_a_result_may_mean_something_else() {
    assert_eq!(once(async || job(1).await).await, 1 + 101 + 51 + 9);
    assert_eq!(once_sync(|| sync(1)), 1);
    assert_eq!(once(async || boxed(1).await).await, 1);
}
