//! Const parameters, of functions and of the types that they are methods of.

use idem_runtime::{Error, KeyPart, idempotent};
use serde::Serialize;

use super::{is_send, memory, once, once_sync, this_key};

#[idempotent(key = "const_generics:array:<id>", fingerprint = (bytes), idem = memory())]
async fn array<const N: usize>(id: u8, bytes: [u8; N]) -> Result<usize, Error>
where
    [u8; N]: Serialize,
{
    tokio::task::yield_now().await;
    Ok(bytes.len() + usize::from(id))
}

#[idempotent(key = "const_generics:lent:<id>", key_fn = lent_key, idem = memory())]
fn lent<const N: usize, const M: usize>(id: u8, rows: &[[u8; N]; M]) -> Result<usize, Error> {
    Ok(N * M + rows.len() + usize::from(id))
}

#[derive(Clone, Copy)]
struct Shard<const N: u8, const HOT: bool>;

impl<const N: u8, const HOT: bool> Shard<N, HOT> {
    const NUMBER: u8 = N;
}

/// A value that tells its parameters in its key.
impl<const N: u8, const HOT: bool> KeyPart for Shard<N, HOT> {
    fn write(&self, out: &mut idem_runtime::KeyWriter) {
        out.write_display(&Self::NUMBER);
    }
}

struct Holder<S>(S);

impl<const N: u8, const HOT: bool> Holder<Shard<N, HOT>> {
    #[idempotent(key = "const_generics:method:<self.0>:<id>", idem = memory())]
    async fn run(&self, id: u8) -> Result<String, Error> {
        let more = if HOT { N } else { 0 };
        Ok(format!("{} {}", this_key(), id + more))
    }
}

#[tokio::test]
async fn const_parameters_are_kept() {
    assert_eq!(once(async || is_send(array(1, [1, 2])).await).await, 3);
    assert!(
        matches!(array(1, [1, 2, 3]).await, Err(Error::FingerprintMismatch { .. })),
        "another length is another value"
    );
    assert_eq!(once_sync(|| lent(1, &[[1, 2], [3, 4], [5, 6]])), 10);
    assert_eq!(lent_key(&1).expect("a key").to_string(), "const_generics:lent:1");
    let (cold, hot) = (Holder(Shard::<3, false>), Holder(Shard::<4, true>));
    assert_eq!(once(async || cold.run(1).await).await, "const_generics:method:3:1 1");
    assert_eq!(once(async || hot.run(1).await).await, "const_generics:method:4:1 5");
}
