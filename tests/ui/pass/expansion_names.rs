//! The very names that the expansion binds, as the user's own.

#![allow(clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]

use idem_runtime::{Error, idempotent};
use sqlx::SqliteConnection;

use super::{bank::Bank, memory, once, once_sync};

#[idempotent(key = "expansion_names:parameters:<__idem_call>", idem = memory())]
async fn parameters(__idem_call: u8, __idem_ret: u8, __idem_error: u8) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(__idem_call + __idem_ret + __idem_error)
}

#[idempotent(key = "expansion_names:sync:<__idem_error>", on_error = judge, idem = memory())]
fn sync(__idem_call: u8, __idem_ret: u8, __idem_error: u8) -> Result<u8, Error> {
    Ok(__idem_call + __idem_ret + __idem_error)
}

fn judge(_: &Error) -> idem_runtime::OnError {
    idem_runtime::OnError::Release
}

#[idempotent(key = "expansion_names:locals:<id>", idem = memory())]
async fn locals(id: u8) -> Result<u8, Error> {
    let __idem_call = id;
    let __idem_ret = __idem_call + 1;
    if let Some(__idem_error) = __idem_ret.checked_add(1) {
        return Ok(__idem_error);
    }
    Ok(__idem_ret)
}

#[idempotent(
    key = "expansion_names:inside:<__idem_guard>",
    mode = "transactional",
    tx = __idem_answer,
    idem = Bank::idem()
)]
async fn inside(
    __idem_guard: u8,
    __idem_call: u8,
    __idem_answer: &mut SqliteConnection,
) -> anyhow::Result<u8> {
    sqlx::query("INSERT INTO postings VALUES (1)").execute(__idem_answer).await?;
    Ok(__idem_guard + __idem_call)
}

/// The registration's static is out of a body's sight.
#[idempotent(key = "expansion_names:job:<id>", idem = memory())]
fn job(id: u8) -> Result<u8, Error> {
    const JOB: u8 = 7;
    static CALL: u8 = 1;
    Ok(id + JOB + CALL)
}

#[tokio::test]
async fn b2_the_names_of_the_expansion_are_free() {
    assert_eq!(once(async || parameters(1, 2, 3).await).await, 6);
    assert_eq!(once_sync(|| sync(1, 2, 3)), 6);
    assert_eq!(once(async || locals(1).await).await, 3);
    let bank = Bank::open();
    assert_eq!(bank.once(async |tx| inside(1, 2, tx).await).await, (3, 1));
    assert_eq!(once_sync(|| job(1)), 9);
}
