//! Results that become what was declared: an object, a closure, a slice.

#![allow(clippy::ptr_arg)]

use std::{fmt::Debug, rc::Rc, sync::Arc};

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, with_outcome, with_outcome_sync};

use super::memory;

trait Shape: Debug {
    fn sides(&self) -> u8;
}

#[derive(Debug)]
struct Square;

impl Shape for Square {
    fn sides(&self) -> u8 {
        4
    }
}

#[derive(Debug)]
struct Circle;

impl Shape for Circle {
    fn sides(&self) -> u8 {
        1
    }
}

#[idempotent(key = "coercions:object:<n>", replay = false, idem = memory())]
async fn object(n: u8) -> Result<Box<dyn Shape>, Error> {
    if n == 0 {
        return Ok(Box::new(Circle));
    }
    tokio::task::yield_now().await;
    Ok(Box::new(Square))
}

#[idempotent(key = "coercions:object_sync:<n>", replay = false, idem = memory())]
fn object_sync(n: u8) -> Result<Rc<dyn Shape>, Error> {
    if n == 0 { Ok(Rc::new(Circle)) } else { Ok(Rc::new(Square)) }
}

#[idempotent(key = "coercions:shared:<n>", replay = false, idem = memory())]
async fn shared(n: u8, shape: Arc<Square>) -> Result<Arc<dyn Shape>, Error> {
    let _ = n;
    Ok(shape)
}

#[idempotent(key = "coercions:closure:<n>", replay = false, idem = memory())]
async fn closure(n: u8) -> Result<Box<dyn Fn(u8) -> u8>, Error> {
    Ok(Box::new(move |m| m + n))
}

#[idempotent(key = "coercions:closure_sync:<n>", replay = false, idem = memory())]
fn closure_sync(n: u8) -> Result<Box<dyn FnMut() -> u8 + Send>, Error> {
    let mut count = n;
    Ok(Box::new(move || {
        count += 1;
        count
    }))
}

#[idempotent(key = "coercions:pointer:<n>", replay = false, idem = memory())]
async fn pointer(n: u8) -> Result<fn(u8) -> u8, Error> {
    if n == 0 { Ok(|m| m) } else { Ok(|m| m + 1) }
}

#[idempotent(key = "coercions:slice:<n>", replay = false, idem = memory())]
async fn slice<'a>(n: u8, list: &'a [u8; 2]) -> Result<&'a [u8], Error> {
    let _ = n;
    Ok(list)
}

#[idempotent(key = "coercions:text:<n>", replay = false, idem = memory())]
async fn text<'a>(n: u8, text: &'a String) -> Result<&'a str, Error> {
    let _ = n;
    Ok(text)
}

#[tokio::test]
async fn b1_a_result_becomes_what_was_declared() {
    assert_eq!(object(0).await.expect("a circle").sides(), 1);
    assert_eq!(object(1).await.expect("a square").sides(), 4);
    assert_eq!(shared(1, Arc::new(Square)).await.expect("a square").sides(), 4);
    assert_eq!(closure(1).await.expect("a closure")(2), 3);
    assert_eq!(pointer(0).await.expect("a function")(2), 2);
    assert_eq!(pointer(1).await.expect("a function")(2), 3);
    assert_eq!(slice(1, &[1, 2]).await.expect("a slice"), [1, 2]);
    assert_eq!(text(1, &"t".to_owned()).await.expect("a text"), "t");
    assert_eq!(object_sync(0).expect("a circle").sides(), 1);
    assert_eq!(object_sync(1).expect("a square").sides(), 4);
    assert_eq!(closure_sync(1).expect("a closure")(), 2);
}

#[tokio::test]
async fn b1_what_cannot_be_stored_is_given_once() {
    let refused = Some(Outcome::Refused(ErrorKind::AlreadyCompleted));
    assert_eq!(object(2).await.expect("a square").sides(), 4);
    assert_eq!(with_outcome(object(2)).await.1, refused);
    assert_eq!(closure_sync(2).expect("a closure")(), 3);
    assert_eq!(with_outcome_sync(|| closure_sync(2)).1, refused);
}
