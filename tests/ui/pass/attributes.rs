//! Attributes beside ours stay on the function: before it, after it, and at the head of the body.

use idem_runtime::{Error, idempotent};

use super::{memory, once_sync};

/// Says `{name}` and `<T>` and [brackets].
#[inline]
#[idempotent(key = "attributes:outer:<id>", idem = memory())]
#[must_use]
#[doc(hidden)]
#[allow(clippy::double_must_use)]
pub(in crate::pass) fn outer(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "attributes:inner:<id>", idem = memory())]
fn inner(id: u8) -> Result<u8, Error> {
    #![allow(unused_variables)]
    #![allow(clippy::no_effect_underscore_binding)]
    let unused = 1;
    Ok(id)
}

#[cfg_attr(all(), idempotent(key = "attributes:applied:<id>", idem = memory()))]
fn applied(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "attributes:both:<id>", idem = memory(), key_fn = both_key)]
#[cfg(any())]
fn both(id: u8) -> Result<u8, NoSuchType> {
    Ok(id)
}

#[idempotent(key = "attributes:old:<id>", idem = memory())]
#[deprecated = "use `outer`"]
fn old(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "attributes:allowed:<id>", idem = memory())]
fn allowed(id: u8, #[allow(unused_variables)] other: u8) -> Result<u8, Error> {
    Ok(id)
}

#[test]
fn attributes_stay() {
    assert_eq!(once_sync(|| outer(1)), 1);
    assert_eq!(once_sync(|| inner(1)), 1);
    assert_eq!(once_sync(|| applied(1)), 1);
    #[expect(deprecated)]
    let call = || old(1);
    assert_eq!(once_sync(call), 1);
    assert_eq!(once_sync(|| allowed(1, 2)), 1);
}

#[idempotent(key = "attributes:test:<nothing>", idem = memory())]
#[cfg(any())]
fn never(nothing: u8) -> Result<u8, Error> {
    Ok(nothing)
}
