//! Phases that a `macro_rules!` writes, and those of a runtime under other names.

use idem_runtime::{Error, idempotent};
use idem_tests_renamed::{Caller, phase_of_a_macro};

use super::{facade, memory, once, once_sync};

macro_rules! job {
    ($name:ident($id:ident), $key:literal, $phase:literal, $body:block) => {
        #[idempotent(key = $key, idem = memory())]
        async fn $name($id: u8) -> Result<u8, Error> {
            let value = idem_runtime::phase!($phase, async $body);
            Ok(value)
        }
    };
}

job!(made(id), "phases_made:made:<id>", "made", { Ok(id + 1) });

macro_rules! charged {
    ($name:literal, $body:expr) => {
        idem_runtime::phase!($name, mode = "record_after", $body)
    };
    ($name:literal, each $each:ident, $value:expr) => {
        idem_runtime::phase!($name, each = <$each>, async { Ok($value) })
    };
    ($name:literal, on $path:path, $value:expr) => {
        $crate::pass::facade::phase!($name, on_error = $path, move || Ok($value))
    };
}

#[idempotent(key = "phases_made:parts:<id>", idem = memory())]
async fn parts(id: u8) -> Result<u8, Error> {
    let mut sum = charged!("whole", async { Ok(id) });
    for number in 0..2_u8 {
        sum += charged!("number", each number, number);
    }
    Ok(sum)
}

fn judge(_: &Error) -> idem_runtime::OnError {
    idem_runtime::OnError::Hold
}

#[idempotent(key = "phases_made:sync:<id>", idem = memory())]
fn sync(id: u8) -> Result<u8, Error> {
    let value = charged!("sync", on judge, id);
    Ok(value + facade::phase!("facade", || Ok(1)))
}

mod glob {
    use idem_runtime::*;

    #[idempotent(key = "phases_made:glob:<id>", idem = super::memory())]
    pub(super) async fn job(id: u8) -> Result<u8, Error> {
        Ok(phase!("glob", async { Ok(id) }))
    }
}

/// Names that the expansion has, and that the standard library has.
mod shadowed {
    #![allow(dead_code, non_camel_case_types)]

    use idem_runtime::{Error, idempotent, phase};

    mod core {}
    mod std {}
    mod idem_runtime_ {}
    struct Some;
    struct Job;
    const PHASE: u8 = 1;

    #[idempotent(key = "phases_made:shadowed:<id>", idem = super::memory())]
    pub(super) async fn job(id: u8) -> ::std::result::Result<u8, Error> {
        let (__idem_call, __idem_none, __idem_leave) = (PHASE, PHASE, PHASE);
        let sum = phase!("shadowed", each = <__idem_call>, async { Ok(id + __idem_none + __idem_leave) });
        Ok(sum)
    }
}

#[tokio::test]
async fn phases_from_macros_and_under_other_names_run_once() {
    assert_eq!(once(async || made(1).await).await, 2);
    assert_eq!(once(async || parts(1).await).await, 2);
    assert_eq!(once_sync(|| sync(1)), 2);
    assert_eq!(once(async || glob::job(1).await).await, 1);
    assert_eq!(once(async || shadowed::job(1).await).await, 3);
}

#[idem_tests_renamed::jobs::idempotent(key = "phases_made:renamed:<id>", crate = ::idem_tests_renamed::jobs, idem = memory())]
async fn renamed(id: u8) -> Result<u8, Error> {
    let value = phase_of_a_macro!("made", Ok(id));
    Ok(value + idem_tests_renamed::jobs::phase!("renamed", async { Ok(1) }))
}

#[tokio::test]
async fn phases_of_another_crate_run_once() {
    let caller = Caller::new(memory().clone());
    assert_eq!(once(async || caller.charge_once(1).await).await, "renamed:charge_once:1/charge");
    assert_eq!(once(async || renamed(1).await).await, 2);
}
