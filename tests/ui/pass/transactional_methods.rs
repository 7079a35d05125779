//! Methods in a transaction of their caller's, native and under `#[async_trait]`.

use async_trait::async_trait;
use idem_runtime::{Error, Idem, OnError, idempotent};
use sqlx::{Connection, Sqlite, SqliteConnection, Transaction};

use super::{bank::Bank, is_send};

type Lent<'a, T> = Result<&'a T, Error>;

async fn post(tx: &mut SqliteConnection, id: u8) -> Result<u8, Error> {
    let done = sqlx::query("INSERT INTO postings VALUES (?1)").bind(id).execute(tx).await;
    assert_eq!(done.expect("a posting").rows_affected(), 1);
    Ok(id)
}

struct Acme {
    idem: Idem,
    tenant: String,
    count: u8,
}

impl Acme {
    #[idempotent(key = "transactional:method:<self.tenant>:<id>", mode = "transactional", idem = self.idem)]
    async fn method(&self, id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
        post(tx, id).await
    }

    #[idempotent(key = "transactional:exclusive:<self.tenant>:<id>", mode = "transactional", idem = self.idem)]
    async fn exclusive(&mut self, id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
        self.count += post(tx, id).await?;
        Ok(self.count)
    }

    #[idempotent(key = "transactional:consuming:<id>", mode = "transactional", idem = self.idem)]
    async fn consuming(self, id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<String, Error> {
        post(tx, id).await?;
        Ok(self.tenant)
    }
}

fn hold(_: &anyhow::Error) -> OnError {
    OnError::Hold
}

fn acme() -> Acme {
    Acme { idem: Bank::idem(), tenant: "acme".to_owned(), count: 1 }
}

trait Native {
    async fn native(&self, id: u8, tx: &mut SqliteConnection) -> Result<u8, Error>;

    #[idempotent(key = "transactional:provided:<id>", mode = "transactional", idem = Bank::idem())]
    async fn provided(&self, id: u8, tx: &mut SqliteConnection) -> Result<u8, Error> {
        let _ = tx;
        Ok(id)
    }
}

impl Native for Acme {
    #[idempotent(key = "transactional:native:<id>", mode = "transactional", idem = self.idem)]
    async fn native(&self, id: u8, tx: &mut SqliteConnection) -> Result<u8, Error> {
        let _ = tx;
        Ok(id + self.count)
    }
}

#[async_trait]
trait Work: Send + Sync {
    async fn shared(&self, id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error>;
    async fn lent<'a>(&'a self, id: u8, tx: &mut SqliteConnection) -> Lent<'a, str>;
    async fn judged(&mut self, id: u8, pair: (u8, u8), conn: &mut SqliteConnection) -> anyhow::Result<u8>;
}

#[async_trait]
impl Work for Acme {
    #[idempotent(key = "transactional:shared:<self.tenant>:<id>", mode = "transactional", idem = self.idem)]
    async fn shared(&self, id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
        post(tx, id).await
    }

    #[idempotent(key = "transactional:work_lent:<id>", mode = "transactional", replay = false, idem = self.idem)]
    async fn lent<'a>(&'a self, id: u8, tx: &mut SqliteConnection) -> Lent<'a, str> {
        let _ = (id, tx);
        Ok(&self.tenant)
    }

    #[idempotent(
        key = "transactional:work_judged:<id>",
        mode = "transactional",
        tx = conn,
        on_error = hold,
        idem = self.idem
    )]
    async fn judged(
        &mut self,
        id: u8,
        (a, b): (u8, u8),
        mut conn: &mut SqliteConnection,
    ) -> anyhow::Result<u8> {
        conn = &mut *conn;
        post(conn, id).await?;
        self.count += a + b;
        Ok(id + self.count)
    }
}

#[tokio::test]
async fn a_method_runs_in_its_callers_transaction() {
    let bank = Bank::open();
    assert_eq!(bank.once(async |tx| acme().method(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| acme().exclusive(1, tx).await).await, (2, 1));
    assert_eq!(bank.once(async |tx| acme().consuming(1, tx).await).await, ("acme".to_owned(), 1));
    assert_eq!(bank.once(async |tx| acme().native(1, tx).await).await, (2, 0));
    assert_eq!(bank.once(async |tx| acme().provided(1, tx).await).await, (1, 0));
    assert_eq!(bank.once(async |tx| is_send(acme().shared(1, tx)).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| is_send(acme().judged(1, (2, 3), tx)).await).await, (7, 1));
}

#[tokio::test]
async fn a_boxed_method_lends_its_result() {
    let bank = Bank::open();
    let mut connection = bank.connection().await;
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
    let work: Box<dyn Work> = Box::new(acme());
    assert_eq!(work.lent(1, &mut tx).await.expect("a first run"), "acme");
    assert!(work.lent(1, &mut tx).await.is_err());
    tx.commit().await.expect("a commit");
}
