//! Lints of the user's own code stay where they were: each `expect` fails if its lint is silenced.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

#[idempotent(key = "bounded_lints:unused:<id>", idem = memory())]
async fn unused(id: u8, #[expect(unused_variables)] never: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "bounded_lints:mutable:<id>", idem = memory())]
async fn mutable(id: u8, #[expect(unused_mut)] mut list: Vec<u8>) -> Result<usize, Error> {
    let _ = id;
    Ok(list.len())
}

#[expect(unreachable_code)]
#[idempotent(key = "bounded_lints:dead:<id>", idem = memory())]
fn dead(id: u8) -> Result<u8, Error> {
    return Ok(id);
    drop(String::new());
}

#[expect(unused_must_use)]
#[idempotent(key = "bounded_lints:must_use:<id>", idem = memory())]
fn must_use(id: u8) -> Result<u8, Error> {
    id.checked_add(1);
    Ok(id)
}

#[tokio::test]
async fn users_lints_are_not_silenced() {
    assert_eq!(once(async || unused(1, 2).await).await, 1);
    assert_eq!(once(async || mutable(1, vec![1]).await).await, 1);
    assert_eq!(once_sync(|| dead(1)), 1);
    assert_eq!(once_sync(|| must_use(1)), 1);
}
