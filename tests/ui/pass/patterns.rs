//! Parameters that are patterns, and parameters that cannot be copied or moved twice.

#![allow(clippy::too_many_arguments)]

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

struct Point {
    x: u8,
    y: u8,
}

struct Token(u8);

#[idempotent(key = "patterns:all:<id>", idem = memory())]
async fn all(
    id: u8,
    (a, b): (u8, u8),
    Point { x, y: renamed }: Point,
    &n: &u8,
    [h, ..]: [u8; 4],
    mut list: Vec<u8>,
    _: u8,
    whole @ Point { .. }: Point,
    Token(token): Token,
) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    list.push(a + b + x + renamed);
    Ok(list.iter().sum::<u8>() + n + h + whole.y + token + id)
}

#[idempotent(key = "patterns:nested:<id>", idem = memory())]
fn nested(
    id: u8,
    Pair { left: (ref first, mut second), right: [head, rest @ .., last] }: Pair,
    &mut ref mut total: &mut u8,
    (Ok(either) | Err(either)): Result<u8, u8>,
    __own: u8,
) -> Result<u8, Error> {
    second += *first;
    *total += 1;
    Ok(id + second + head + last + either + __own + rest.iter().sum::<u8>())
}

struct Pair {
    left: (u8, u8),
    right: [u8; 4],
}

/// All that is bound is used nowhere.
#[idempotent(key = "patterns:unkeyed", singleton, idem = memory())]
async fn unkeyed((_a, _): (u8, u8), Point { .. }: Point, _unused: Token, _: Token) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(1)
}

#[tokio::test]
async fn b12_patterns_bind_as_they_do_without_the_attribute() {
    let call = async || {
        all(1, (1, 2), Point { x: 3, y: 4 }, &5, [6, 0, 0, 0], vec![7], 8, Point { x: 9, y: 10 }, Token(11))
            .await
    };
    assert_eq!(once(call).await, 1 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 10 + 11);
    let pair = || Pair { left: (1, 2), right: [3, 4, 5, 6] };
    assert_eq!(once_sync(|| nested(1, pair(), &mut 0, Err(7), 8)), 1 + 3 + 3 + 6 + 7 + 8 + 9);
    let call = async || unkeyed((1, 2), Point { x: 1, y: 2 }, Token(1), Token(2)).await;
    assert_eq!(once(call).await, 1);
}
