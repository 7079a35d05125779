//! `impl Trait` and `dyn Trait` parameters.

use idem_runtime::{Error, KeyPart, idempotent};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "impl_trait:part:<id>", idem = memory())]
async fn part(id: impl KeyPart + Send + Sync, name: impl AsRef<str> + Send) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    let _ = id;
    Ok(name.as_ref().len())
}

#[idempotent(key = "impl_trait:calls:<id>", idem = memory())]
fn calls(id: u8, double: &dyn Fn(u8) -> u8, mut log: impl FnMut(u8)) -> Result<u8, Error> {
    log(id);
    Ok(double(id))
}

#[tokio::test]
async fn impl_trait_parameters_work() {
    assert_eq!(once(async || is_send(part(1_u8, "abc")).await).await, 3);
    assert_eq!(once_sync(|| calls(2, &|n| n * 2, |_| {})), 4);
}
