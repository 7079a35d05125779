//! Lints of the user's own code stay where they were: each `expect` fails if its lint is silenced.

use idem_runtime::{Error, idempotent};
use sqlx::{Executor, SqliteConnection};

use super::{bank::Bank, memory, once, once_sync};

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

#[idempotent(key = "bounded_lints:unused_tx:<id>", mode = "transactional", idem = Bank::idem())]
async fn unused_tx(id: u8, #[expect(unused_variables)] tx: &mut SqliteConnection) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "bounded_lints:allowed_tx:<id>", mode = "transactional", idem = Bank::idem())]
async fn allowed_tx(id: u8, #[allow(unused)] tx: &mut SqliteConnection) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "bounded_lints:mutable_tx:<id>", mode = "transactional", idem = Bank::idem())]
async fn mutable_tx(id: u8, #[expect(unused_mut)] mut tx: &mut SqliteConnection) -> Result<u8, Error> {
    tx.execute("SELECT 1").await.ok();
    Ok(id)
}

#[idempotent(key = "bounded_lints:underscored_tx:<id>", mode = "transactional", tx = _tx, idem = Bank::idem())]
async fn underscored_tx(id: u8, _tx: &mut SqliteConnection) -> Result<u8, Error> {
    Ok(id)
}

#[tokio::test]
async fn users_lints_are_not_silenced() {
    assert_eq!(once(async || unused(1, 2).await).await, 1);
    assert_eq!(once(async || mutable(1, vec![1]).await).await, 1);
    assert_eq!(once_sync(|| dead(1)), 1);
    assert_eq!(once_sync(|| must_use(1)), 1);
    let bank = Bank::open();
    assert_eq!(bank.once(async |tx| unused_tx(1, tx).await).await, (1, 0));
    assert_eq!(bank.once(async |tx| allowed_tx(1, tx).await).await, (1, 0));
    assert_eq!(bank.once(async |tx| mutable_tx(1, tx).await).await, (1, 0));
    assert_eq!(bank.once(async |tx| underscored_tx(1, tx).await).await, (1, 0));
}
