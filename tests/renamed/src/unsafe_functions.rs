//! `unsafe` functions stay unsafe: to call one is, and to read a pointer inside is, too.

use jobs::{Error, Idem, KeyPart, Outcome, idempotent, with_outcome, with_outcome_sync};

#[derive(Clone, Copy, KeyPart)]
#[key_part(crate = jobs)]
struct Id(u8);

/// # Safety
///
/// The pointer is valid.
#[idempotent(key = "unsafe_functions:sync:<id>", idem = idem, crate = jobs)]
unsafe fn sync(idem: &Idem, id: Id, number: *const u8) -> Result<u8, Error> {
    let _ = (idem, id);
    // SAFETY: the caller's promise.
    Ok(unsafe { *number })
}

/// # Safety
///
/// The pointer is valid until the future is done.
#[idempotent(key = "unsafe_functions:async:<id>", idem = idem, crate = jobs)]
async unsafe fn later(idem: &Idem, id: Id, number: *const u8) -> Result<u8, Error> {
    let _ = (idem, id);
    tokio::task::yield_now().await;
    // SAFETY: the caller's promise.
    Ok(unsafe { *number })
}

/// A safe body in a function that is unsafe to call.
///
/// # Safety
///
/// Call it in May alone.
#[idempotent(key = "unsafe_functions:safe_inside:<id>", idem = idem, crate = jobs)]
unsafe fn safe_inside(idem: &Idem, id: Id) -> Result<u8, Error> {
    let _ = idem;
    Ok(id.0)
}

/// That they are unsafe: a coercion to a safe pointer would not compile, and one to an unsafe pointer does.
const UNSAFE: unsafe fn(&Idem, Id, *const u8) -> Result<u8, Error> = sync;

#[tokio::test]
async fn b11_an_unsafe_function_stays_unsafe_and_runs_once() {
    let idem = Idem::connect("memory:").await.expect("a store in memory");
    let number = 7;
    // SAFETY: the number is there.
    let call = || with_outcome_sync(|| unsafe { UNSAFE(&idem, Id(1), &raw const number) });
    let (first, outcome) = call();
    assert_eq!((first.expect("a first run"), outcome), (7, Some(Outcome::Executed)));
    let (second, outcome) = call();
    assert_eq!((second.expect("a replay"), outcome), (7, Some(Outcome::Replayed)));
    for expected in [Outcome::Executed, Outcome::Replayed] {
        // SAFETY: the number is there.
        let (result, outcome) = with_outcome(unsafe { later(&idem, Id(1), &raw const number) }).await;
        assert_eq!((result.expect("a number"), outcome), (7, Some(expected)));
        // SAFETY: it is May.
        let (result, outcome) = with_outcome_sync(|| unsafe { safe_inside(&idem, Id(1)) });
        assert_eq!((result.expect("a number"), outcome), (1, Some(expected)));
    }
}
