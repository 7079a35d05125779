//! Phases that are recorded in a transaction: of the job's own, and of the transaction that the job itself is in.

use idem_runtime::{Error, OnError, idempotent, phase};
use sqlx::{Connection, Sqlite, SqliteConnection, Transaction};

use super::{bank::Bank, is_send, once};

async fn post(connection: &mut SqliteConnection, id: u8) -> Result<u8, sqlx::Error> {
    let done = sqlx::query("INSERT INTO postings VALUES (?1)").bind(id).execute(connection).await?;
    assert_eq!(done.rows_affected(), 1);
    Ok(id)
}

fn judge(_: &anyhow::Error) -> OnError {
    OnError::Release
}

/// Of a variable that holds a transaction, by name, and committed before the next phase.
#[idempotent(key = "phases_transactional:owned:<id>", on_error = "release", idem = Bank::idem())]
async fn owned(id: u8, connection: &mut SqliteConnection, fails: bool) -> anyhow::Result<u8> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let posted = phase!("posted", mode = "transactional", tx = tx, async {
        sqlx::query("INSERT INTO postings VALUES (0)").execute(&mut *tx).await?;
        Ok(post(tx, id).await?)
    });
    tx.commit().await?;
    if fails {
        anyhow::bail!("after the commit");
    }
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    for number in 0..2 {
        phase!("nothing", mode = "transactional", tx = tx, on_error = judge, each = <number>, async move { Ok(number) });
    }
    tx.commit().await?;
    Ok(posted)
}

/// Of a helper, whose parameter the transaction is.
async fn helper(id: u8, tx: &mut Transaction<'_, Sqlite>) -> anyhow::Result<u8> {
    let posted = phase!("helped", mode = "transactional", tx = tx, async move {
        sqlx::query("INSERT INTO postings VALUES (0)").execute(&mut **tx).await?;
        Ok(post(tx, id).await?)
    });
    Ok(posted)
}

#[idempotent(key = "phases_transactional:inside:<id>", mode = "transactional", tx = job_tx, idem = Bank::idem())]
async fn inside(id: u8, job_tx: &mut Transaction<'_, Sqlite>) -> anyhow::Result<u8> {
    let posted = phase!("posted", mode = "transactional", tx = job_tx, async { Ok(post(job_tx, id).await?) });
    Ok(posted + helper(id, job_tx).await?)
}

#[idempotent(key = "phases_transactional:raw:<id>", mode = "transactional", tx = r#type, idem = Bank::idem())]
async fn raw(id: u8, r#type: &mut SqliteConnection) -> Result<u8, Error> {
    phase!("posted", mode = "transactional", tx = r#type, async {
        Ok(post(r#type, id).await.unwrap_or_default())
    });
    Ok(id)
}

#[tokio::test]
async fn phases_in_a_transaction_run_once() {
    let bank = Bank::open();
    let mut connection = bank.connection().await;
    is_send(owned(3, &mut connection, true)).await.expect_err("a failure");
    let again = async || is_send(owned(3, &mut bank.connection().await, false)).await;
    assert_eq!(once(again).await, 3);
    let posted: i64 = sqlx::query_scalar("SELECT count(*) FROM postings WHERE id IN (0, 3)")
        .fetch_one(&mut connection)
        .await
        .expect("a count");
    assert_eq!(posted, 2);
    assert_eq!(bank.once(async |tx| is_send(inside(4, tx)).await).await, (8, 3));
    assert_eq!(bank.once(async |tx| is_send(raw(5, tx)).await).await, (5, 1));
}
