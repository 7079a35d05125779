//! Parameters whose names equal the expansion's, or could.

#![allow(clippy::too_many_arguments)]

use idem_runtime::{Error, idempotent};
use sqlx::SqliteConnection;

use super::{bank::Bank, memory, once, once_sync};

#[idempotent(key = "our_names:first:<key>:<job>", fingerprint = (stored, part), idem = memory())]
async fn first(
    key: u8,
    job: u8,
    result: u8,
    store: u8,
    pool: u8,
    conn: u8,
    tx: u8,
    token: u8,
    stored: u8,
    part: u8,
) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(key + job + result + store + pool + conn + tx + token + stored + part)
}

#[idempotent(key = "our_names:second:<lease>", idem = memory())]
async fn second(
    lease: u8,
    now: u8,
    args: u8,
    ctx: u8,
    fut: u8,
    err: u8,
    error: u8,
    inner: u8,
    body: u8,
    guard: u8,
    idem: u8,
    out: u8,
) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(lease + now + args + ctx + fut + err + error + inner + body + guard + idem + out)
}

#[idempotent(key = "our_names:third:<call>:<run>", fingerprint = (none, describe), on_error = judge, idem = memory())]
fn third(
    call: u8,
    run: u8,
    none: u8,
    describe: u8,
    render: u8,
    ret: u8,
    ok: u8,
    some: u8,
    core: u8,
    std: u8,
    idem_runtime: u8,
    inventory: u8,
) -> Result<u8, Error> {
    Ok(call + run + none + describe + render + ret + ok + some + core + std + idem_runtime + inventory)
}

fn judge(_: &Error) -> idem_runtime::OnError {
    idem_runtime::OnError::Release
}

#[idempotent(key = "our_names:boxed:<fut>:<body>", idem = memory())]
fn boxed(
    fut: u8,
    body: u8,
    call: u8,
) -> std::pin::Pin<Box<dyn std::future::Future<Output = Result<u8, Error>> + Send>> {
    Box::pin(async move { Ok(fut + body + call) })
}

#[idempotent(key = "our_names:inside:<key>:<guard>", mode = "transactional", tx = conn, idem = Bank::idem())]
async fn inside(
    key: u8,
    guard: u8,
    tx: u8,
    answer: u8,
    begun: u8,
    conn: &mut SqliteConnection,
) -> anyhow::Result<u8> {
    sqlx::query("INSERT INTO postings VALUES (1)").execute(conn).await?;
    Ok(key + guard + tx + answer + begun)
}

#[tokio::test]
async fn b2_parameters_may_have_any_name() {
    assert_eq!(once(async || first(1, 1, 1, 1, 1, 1, 1, 1, 1, 1).await).await, 10);
    assert_eq!(once(async || second(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1).await).await, 12);
    assert_eq!(once_sync(|| third(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)), 12);
    assert_eq!(once(async || boxed(1, 1, 1).await).await, 3);
    let bank = Bank::open();
    assert_eq!(bank.once(async |tx| inside(1, 1, 1, 1, 1, tx).await).await, (5, 1));
}
