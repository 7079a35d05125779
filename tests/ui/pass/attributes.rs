//! Attributes beside ours stay on the function, once, whether above or below.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

#[inline]
#[idempotent(key = "attributes:outer:<id>", idem = memory())]
#[must_use]
#[doc(hidden)]
#[allow(clippy::double_must_use)]
fn outer(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "attributes:old:<id>", idem = memory())]
#[deprecated = "use `outer`"]
#[inline(never)]
#[cold]
fn old(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[must_use = "it was paid for"]
#[idempotent(key = "attributes:wanted:<id>", idem = memory())]
async fn wanted(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "attributes:parameter:<id>", idem = memory())]
fn parameter(id: u8, #[allow(unused_variables)] other: u8) -> Result<u8, Error> {
    Ok(id)
}

#[test]
fn b11_attributes_stay_on_the_function() {
    assert_eq!(once_sync(|| outer(1)), 1);
    #[expect(deprecated)]
    let call = || old(1);
    assert_eq!(once_sync(call), 1);
    assert_eq!(once_sync(|| parameter(1, 2)), 1);
}

#[tokio::test]
async fn b11_a_job_that_must_be_used_must_be_used() {
    assert_eq!(once(async || wanted(1).await).await, 1);
    #[expect(unused_must_use)]
    {
        wanted(2);
        outer(2);
    }
    assert_eq!(once(async || wanted(2).await).await, 2, "what was never awaited never ran");
}
