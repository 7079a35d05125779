//! Bodies that need the declared return type as an expectation.

use std::error::Error as StdError;

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

type Boxed = Box<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("mine")]
struct Mine;

#[idempotent(key = "coercions:from_text:<n>", idem = memory())]
async fn from_text(n: u8) -> Result<u8, Boxed> {
    if n > 9 { Err("too much".into()) } else { Ok(n) }
}

#[idempotent(key = "coercions:boxed_error:<n>", idem = memory())]
async fn boxed_error(n: u8) -> Result<u8, Boxed> {
    if n > 9 {
        return Err(Box::new(Mine));
    }
    let parsed: u8 = n.to_string().parse()?;
    Ok(parsed)
}

#[idempotent(key = "coercions:boxed_error_sync:<n>", idem = memory())]
fn boxed_error_sync(n: u8) -> Result<u8, Boxed> {
    if n > 9 { Err(Box::new(Mine)) } else { Ok(n) }
}

trait Shape {
    fn sides(&self) -> u8;
}

struct Square;

impl Shape for Square {
    fn sides(&self) -> u8 {
        4
    }
}

#[idempotent(key = "coercions:object:<n>", replay = false, idem = memory())]
async fn object(n: u8) -> Result<Box<dyn Shape>, Error> {
    let _ = n;
    Ok(Box::new(Square))
}

#[idempotent(key = "coercions:closure:<n>", replay = false, idem = memory())]
async fn closure(n: u8) -> Result<Box<dyn Fn(u8) -> u8>, Error> {
    Ok(Box::new(move |m| m + n))
}

#[idempotent(key = "coercions:slice:<n>", replay = false, idem = memory())]
async fn slice<'a>(n: u8, list: &'a [u8; 2]) -> Result<&'a [u8], Error> {
    let _ = n;
    Ok(list)
}

#[idempotent(key = "coercions:panics:<n>", idem = memory())]
async fn panics(n: u8) -> Result<u8, Error> {
    if n > 200 { unreachable!() } else { panic!("{n} is never run here") }
}

#[idempotent(key = "coercions:forever:<n>", idem = memory())]
async fn forever(n: u8) -> Result<u8, Error> {
    loop {
        if n > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn declared_types_are_expectations() {
    assert_eq!(once(async || from_text(1).await).await, 1);
    assert_eq!(from_text(10).await.expect_err("too much").to_string(), "too much");
    assert_eq!(once(async || boxed_error(1).await).await, 1);
    assert_eq!(boxed_error(10).await.expect_err("mine").to_string(), "mine");
    assert_eq!(once_sync(|| boxed_error_sync(1)), 1);
    assert_eq!(object(1).await.expect("an object").sides(), 4);
    assert_eq!(closure(1).await.expect("a closure")(2), 3);
    assert_eq!(slice(1, &[1, 2]).await.expect("a slice"), [1, 2]);
    drop((panics(1), forever(1)));
}
