//! Bodies that end in what never gives a value, and bodies that end in `return`.

#![allow(clippy::diverging_sub_expression)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "diverging:todo:<n>", idem = memory())]
#[allow(clippy::todo)]
async fn unwritten(n: u8) -> Result<u32, Error> {
    let _ = n;
    todo!()
}

#[idempotent(key = "diverging:todo_sync:<n>", idem = memory())]
#[expect(clippy::todo)]
fn unwritten_sync(n: u8) -> Result<u32, Error> {
    todo!("{n} is next")
}

#[idempotent(key = "diverging:panics:<n>", idem = memory())]
async fn panics(n: u8) -> Result<u32, Error> {
    if n > 200 { unreachable!() } else { panic!("{n} is bad") }
}

#[idempotent(key = "diverging:forever:<n>", idem = memory())]
async fn forever(n: u8) -> Result<u32, Error> {
    loop {
        if n > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[idempotent(key = "diverging:forever_sync:<n>", idem = memory())]
fn forever_sync(n: u8) -> Result<u32, Error> {
    let mut left = n;
    loop {
        if left == 0 {
            return Ok(n.into());
        }
        left -= 1;
    }
}

#[idempotent(key = "diverging:pending:<n>", idem = memory())]
async fn pending(n: u8) -> Result<u32, Error> {
    let _ = n;
    std::future::pending().await
}

#[idempotent(key = "diverging:returned:<n>", idem = memory())]
#[expect(clippy::needless_return)]
async fn returned(n: u8) -> Result<u32, Error> {
    let _ = n;
    return Ok(1);
}

#[idempotent(key = "diverging:returned_sync:<n>", idem = memory())]
#[expect(clippy::needless_return)]
fn returned_sync(n: u8) -> Result<u32, Error> {
    let _ = n;
    return Ok(1);
}

#[idempotent(key = "diverging:never_left:<n>", idem = memory())]
#[expect(unreachable_code)]
fn never_left(n: u8) -> Result<u32, Error> {
    let _number: u32 = return Ok(n.into());
    Ok(0)
}

#[tokio::test]
async fn b1_a_body_may_end_in_a_return() {
    assert_eq!(once(async || is_send(returned(1)).await).await, 1);
    assert_eq!(once_sync(|| returned_sync(1)), 1);
    assert_eq!(once_sync(|| never_left(3)), 3);
    assert_eq!(once_sync(|| forever_sync(3)), 3);
}

#[tokio::test]
async fn b1_a_body_may_end_in_a_panic() {
    let lost = tokio::spawn(unwritten(1)).await.expect_err("a panic").into_panic();
    assert_eq!(lost.downcast_ref::<&str>(), Some(&"not yet implemented"));
    let lost = tokio::spawn(panics(1)).await.expect_err("a panic").into_panic();
    assert_eq!(lost.downcast_ref::<String>().map(String::as_str), Some("1 is bad"));
    let lost = catch_unwind(AssertUnwindSafe(|| unwritten_sync(1))).expect_err("a panic");
    assert_eq!(lost.downcast_ref::<String>().map(String::as_str), Some("not yet implemented: 1 is next"));
}

#[tokio::test]
async fn b1_a_body_may_never_end() {
    for endless in [tokio::spawn(forever(1)), tokio::spawn(pending(1))] {
        tokio::task::yield_now().await;
        endless.abort();
        assert!(endless.await.expect_err("it has no end").is_cancelled());
    }
}
