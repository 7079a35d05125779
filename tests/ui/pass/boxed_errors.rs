//! `Box<dyn Error>`: what `Into` and a coercion make of an error.

#![allow(clippy::needless_return)]

use std::{
    error::Error as StdError,
    num::{ParseIntError, TryFromIntError},
    str::ParseBoolError,
};

use idem_runtime::idempotent;

use super::{is_send, memory, once, once_sync};

type Boxed = Box<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("mine")]
struct Mine;

#[idempotent(key = "boxed_errors:text:<n>", idem = memory())]
async fn text(n: u8) -> Result<u32, Box<dyn StdError + Send + Sync>> {
    if n > 9 { Err("too much".into()) } else { Ok(n.into()) }
}

#[idempotent(key = "boxed_errors:text_sync:<n>", idem = memory())]
fn text_sync(n: u8) -> Result<u32, Box<dyn StdError + Send + Sync>> {
    if n > 9 {
        return Err("too much".into());
    }
    Ok(n.into())
}

#[idempotent(key = "boxed_errors:tail:<n>", idem = memory())]
async fn tail(n: u8) -> Result<u32, Boxed> {
    let _ = n;
    Err("always".into())
}

#[idempotent(key = "boxed_errors:tail_sync:<n>", idem = memory())]
fn tail_sync(n: u8) -> Result<u32, Boxed> {
    let _ = n;
    Err("always".into())
}

#[idempotent(key = "boxed_errors:boxed:<n>", idem = memory())]
async fn boxed(n: u8) -> Result<u32, Boxed> {
    tokio::task::yield_now().await;
    match n {
        0 => Err(Box::new(Mine)),
        1..=9 => Ok(n.into()),
        _ => {
            let mine = Box::new(Mine);
            return Err(mine);
        }
    }
}

#[idempotent(key = "boxed_errors:boxed_sync:<n>", idem = memory())]
fn boxed_sync(n: u8) -> Result<u32, Boxed> {
    if n > 9 { Err(Box::new(Mine)) } else { Ok(n.into()) }
}

#[idempotent(key = "boxed_errors:two:<text>", idem = memory())]
async fn two(text: &str) -> Result<u32, Boxed> {
    let (number, flag) = text.split_once(',').ok_or("no comma")?;
    let number: u32 = number.parse()?;
    tokio::task::yield_now().await;
    let flag: bool = flag.parse()?;
    Ok(if flag { number } else { 0 })
}

#[idempotent(key = "boxed_errors:two_sync:<text>", idem = memory())]
fn two_sync(text: &str) -> Result<u32, Boxed> {
    let (number, flag) = text.split_once(',').ok_or_else(|| format!("no comma in {text}"))?;
    let flag: bool = flag.parse()?;
    Ok(if flag { number.parse()? } else { u32::try_from(-1)? })
}

/// One that need not leave its thread.
#[idempotent(key = "boxed_errors:local:<n>", idem = memory())]
async fn local(n: u8) -> Result<u32, Box<dyn StdError>> {
    if n > 9 { Err(Box::new(Mine)) } else { Ok(n.into()) }
}

#[tokio::test]
async fn b1_an_error_becomes_the_declared_box() {
    assert_eq!(once(async || is_send(text(1)).await).await, 1);
    assert_eq!(text(10).await.expect_err("too much").to_string(), "too much");
    assert_eq!(tail(1).await.expect_err("always").to_string(), "always");
    assert_eq!(once(async || is_send(boxed(1)).await).await, 1);
    for n in [0, 10] {
        assert!(boxed(n).await.expect_err("mine").is::<Mine>());
    }
    assert_eq!(once(async || local(1).await).await, 1);
    assert!(local(10).await.expect_err("mine").is::<Mine>());
}

#[test]
fn b1_an_error_becomes_the_declared_box_in_a_sync_job() {
    assert_eq!(once_sync(|| text_sync(1)), 1);
    assert_eq!(text_sync(10).expect_err("too much").to_string(), "too much");
    assert_eq!(tail_sync(1).expect_err("always").to_string(), "always");
    assert_eq!(once_sync(|| boxed_sync(1)), 1);
    assert!(boxed_sync(10).expect_err("mine").is::<Mine>());
}

#[tokio::test]
async fn b1_a_question_mark_takes_two_types_of_error() {
    assert_eq!(once(async || is_send(two("7,true")).await).await, 7);
    assert_eq!(two("x").await.expect_err("no comma").to_string(), "no comma");
    assert!(two("x,true").await.expect_err("no number").is::<ParseIntError>());
    assert!(two("7,x").await.expect_err("no flag").is::<ParseBoolError>());
    assert_eq!(once_sync(|| two_sync("7,true")), 7);
    assert_eq!(two_sync("x").expect_err("no comma").to_string(), "no comma in x");
    assert!(two_sync("x,true").expect_err("no number").is::<ParseIntError>());
    assert!(two_sync("7,x").expect_err("no flag").is::<ParseBoolError>());
    assert!(two_sync("7,false").expect_err("negative").is::<TryFromIntError>());
}
