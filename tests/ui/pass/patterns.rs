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

#[idempotent(key = "patterns:mutable:<name>", idem = memory())]
fn mutable(mut name: String, &mut ref mut total: &mut u8) -> Result<String, Error> {
    *total += 1;
    name.push('!');
    Ok(name)
}

#[idempotent(key = "patterns:moved:<id>", idem = memory())]
fn moved(id: u8, token: Token) -> Result<u8, Error> {
    let inner = token;
    Ok(inner.0 + id)
}

#[tokio::test]
async fn patterns_bind_as_they_do_without_the_attribute() {
    let call = async || {
        all(1, (1, 2), Point { x: 3, y: 4 }, &5, [6, 0, 0, 0], vec![7], 8, Point { x: 9, y: 10 }, Token(11))
            .await
    };
    assert_eq!(once(call).await, 1 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 10 + 11);
    assert_eq!(once_sync(|| mutable("a".to_owned(), &mut 0)), "a!");
    assert_eq!(once_sync(|| moved(1, Token(2))), 3);
}
