//! Jobs in a transaction of their caller's. Those of Postgres and MySQL are compiled, and those of SQLite run as well.

use std::{future::Future, pin::Pin};

use idem_runtime::{
    Error, ErrorKind, OnError, Outcome, Transact, TransactDatabase, idempotent, with_outcome,
};
use sqlx::{
    Connection, Executor, IntoArguments, MySql, MySqlConnection, MySqlTransaction, PgConnection,
    PgTransaction, Postgres, Sqlite, SqliteConnection, SqliteTransaction, Transaction,
};

use super::{bank::Bank, is_send};

type Lent<'a, T> = std::result::Result<&'a T, Error>;

async fn post(tx: &mut Transaction<'_, Sqlite>, id: u8) -> Result<u8, Error> {
    let done = sqlx::query("INSERT INTO postings VALUES (?1)").bind(id).execute(&mut **tx).await;
    assert_eq!(done.expect("a posting").rows_affected(), 1);
    Ok(id)
}

#[idempotent(key = "transactional:whole:<id>", mode = "transactional", idem = Bank::idem())]
async fn whole(id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
    post(tx, id).await?;
    post(tx, id).await
}

#[idempotent(key = "transactional:alias:<id>", mode = "transactional", idem = Bank::idem())]
async fn alias(tx: &mut SqliteTransaction<'_>, id: u8) -> Result<u8, Error> {
    post(tx, id).await
}

#[idempotent(key = "transactional:connection:<id>", mode = "transactional", tx = conn, idem = Bank::idem())]
async fn connection(id: u8, conn: &mut SqliteConnection) -> anyhow::Result<u8> {
    sqlx::query("INSERT INTO postings VALUES (?1)").bind(id).execute(conn).await?;
    Ok(id)
}

#[idempotent(key = "transactional:named:<name>", mode = "transactional", idem = Bank::idem())]
async fn named<'n, 't, 'c: 't>(name: &'n str, tx: &'t mut Transaction<'c, Sqlite>) -> Result<usize, Error> {
    post(tx, 1).await?;
    Ok(name.len())
}

#[idempotent(key = "transactional:mutable:<id>", mode = "transactional", idem = Bank::idem())]
async fn mutable(id: u8, mut tx: &mut SqliteConnection) -> anyhow::Result<u8> {
    for _ in 0..2 {
        let again = tx;
        sqlx::query("INSERT INTO postings VALUES (?1)").bind(id).execute(&mut *again).await?;
        tx = again;
    }
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM postings").fetch_one(tx).await?;
    Ok(if left > 0 { id } else { 0 })
}

#[idempotent(key = "transactional:raw:<id>", mode = "transactional", tx = r#type, idem = Bank::idem())]
async fn raw(id: u8, r#type: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
    post(r#type, id).await
}

#[idempotent(key = "transactional:any_database:<id>", mode = "transactional", idem = Bank::idem())]
async fn any_database<DB>(id: u8, tx: &mut Transaction<'_, DB>) -> anyhow::Result<u8>
where
    DB: TransactDatabase,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    sqlx::query("INSERT INTO postings VALUES (7)").execute(&mut **tx).await?;
    Ok(id)
}

#[idempotent(key = "transactional:anything:<id>", mode = "transactional", idem = Bank::idem())]
async fn anything<X: Transact>(id: u8, tx: &mut X) -> Result<u8, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = "transactional:impl_trait:<id>", mode = "transactional", idem = Bank::idem())]
async fn impl_trait(id: u8, tx: &mut impl Transact) -> Result<u8, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(
    key = "transactional:judged:<id>",
    mode = "transactional",
    on_error = judge,
    on_busy = "error",
    ttl = "1d",
    fingerprint = (amount),
    key_fn = judged_key,
    idem = Bank::idem()
)]
async fn judged(id: u8, amount: u32, tx: &mut Transaction<'_, Sqlite>) -> anyhow::Result<u8> {
    if amount > 100 {
        anyhow::bail!("{amount} is too much for {id}");
    }
    Ok(post(tx, id).await?)
}

fn judge(_: &anyhow::Error) -> OnError {
    OnError::Record
}

#[idempotent(key = "transactional:lent:<id>", mode = "transactional", replay = false, idem = Bank::idem())]
async fn lent<'a>(id: u8, from: &'a [u8], tx: &mut Transaction<'_, Sqlite>) -> Lent<'a, u8> {
    post(tx, id).await?;
    Ok(&from[usize::from(id)])
}

#[idempotent(key = "transactional:boxed:<id>", mode = "transactional", idem = Bank::idem())]
fn boxed<'a>(
    id: u8,
    tx: &'a mut Transaction<'_, Sqlite>,
) -> Pin<Box<dyn Future<Output = Result<u8, Error>> + Send + 'a>> {
    if id == 0 {
        return Box::pin(std::future::ready(Ok(0)));
    }
    Box::pin(async move { post(tx, id).await })
}

#[tracing::instrument(skip_all)]
#[idempotent(key = "transactional:traced_above:<id>", mode = "transactional", idem = Bank::idem())]
async fn traced_above(id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
    post(tx, id).await
}

#[idempotent(key = "transactional:traced_below:<id>", mode = "transactional", idem = Bank::idem())]
#[tracing::instrument(skip(tx), ret, err)]
async fn traced_below(id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
    post(tx, id).await
}

#[idempotent(key = "transactional:traced:<id>", mode = "transactional", idem = Bank::idem())]
#[tracing::instrument]
async fn traced(id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
    post(tx, id).await
}

macro_rules! job {
    ($name:ident, $tx:ident: $ty:ty, $key:literal, $body:block) => {
        #[idempotent(key = $key, mode = "transactional", tx = $tx, idem = Bank::idem())]
        async fn $name(id: u8, $tx: $ty) -> Result<u8, Error> $body
    };
    ($name:ident, $key:literal) => {
        #[idempotent(key = $key, mode = "transactional", idem = Bank::idem())]
        async fn $name(id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
            post(tx, id).await
        }
    };
}

job!(made_whole, "transactional:made:<id>");
job!(made_of_parts, held: &mut Transaction<'_, Sqlite>, "transactional:parts:<id>", { post(held, 1).await });

/// A name that the expansion has, too.
#[idempotent(key = "transactional:our_name:<id>", mode = "transactional", tx = __idem_call, idem = Bank::idem())]
async fn our_name(id: u8, mut __idem_call: &mut Transaction<'_, Sqlite>) -> Result<u8, Error> {
    __idem_call = &mut *__idem_call;
    post(__idem_call, id).await
}

/// Names that the expansion has, too.
#[idempotent(key = "transactional:ours:<__idem_call>", mode = "transactional", tx = __idem_guard, idem = Bank::idem())]
#[allow(clippy::used_underscore_binding)]
async fn our_names(
    __idem_call: u8,
    __idem_guard: &mut Transaction<'_, Sqlite>,
    __idem_answer: u8,
    __idem_ret: u8,
) -> Result<u8, Error> {
    post(__idem_guard, __idem_call).await?;
    Ok(__idem_call + __idem_answer + __idem_ret)
}

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// `return`, `?`, items and a tail that is coerced, as in any function.
#[idempotent(key = "transactional:control:<id>", mode = "transactional", idem = Bank::idem())]
async fn control(id: u8, tx: &mut Transaction<'_, Sqlite>) -> Result<u8, BoxedError> {
    use std::num::ParseIntError;
    fn parse(text: &str) -> Result<u8, ParseIntError> {
        text.parse()
    }
    if id == 0 {
        return Ok(id);
    }
    let tx = &mut *tx;
    let posted = post(tx, parse("1")?).await?;
    if posted == id {
        return Ok(posted);
    }
    Err(Box::new(std::fmt::Error))
}

mod of_postgres {
    use super::{Error, PgConnection, PgTransaction, Postgres, Transaction, idempotent};

    #[idempotent(key = "transactional:pg_whole:<id>", mode = "transactional")]
    pub(super) async fn whole(id: u8, tx: &mut Transaction<'_, Postgres>) -> anyhow::Result<u8> {
        sqlx::query("INSERT INTO postings VALUES ($1)").bind(i16::from(id)).execute(&mut **tx).await?;
        Ok(id)
    }

    #[idempotent(key = "transactional:pg_alias:<id>", mode = "transactional")]
    pub(super) async fn alias(id: u8, mut tx: &mut PgTransaction<'_>) -> Result<u8, Error> {
        tx = &mut *tx;
        let _ = tx;
        Ok(id)
    }

    #[idempotent(key = "transactional:pg_connection:<id>", mode = "transactional", tx = _connection)]
    pub(super) async fn connection(id: u8, _connection: &mut PgConnection) -> Result<u8, Error> {
        Ok(id)
    }
}

mod of_mysql {
    use super::{Error, MySql, MySqlConnection, MySqlTransaction, Transaction, idempotent};

    #[idempotent(key = "transactional:my_whole:<id>", mode = "transactional")]
    pub(super) async fn whole(id: u8, tx: &mut Transaction<'_, MySql>) -> anyhow::Result<u8> {
        sqlx::query("INSERT INTO postings VALUES (?)").bind(id).execute(&mut **tx).await?;
        Ok(id)
    }

    #[idempotent(key = "transactional:my_alias:<id>", mode = "transactional", tx = _tx)]
    pub(super) async fn alias(id: u8, _tx: &mut MySqlTransaction<'_>) -> Result<u8, Error> {
        Ok(id)
    }

    #[idempotent(key = "transactional:my_connection:<id>", mode = "transactional", tx = conn)]
    pub(super) async fn connection(id: u8, #[allow(unused)] conn: &mut MySqlConnection) -> Result<u8, Error> {
        Ok(id)
    }
}

#[allow(dead_code, reason = "compiled, and not called")]
async fn of_mysql(mut tx: MySqlTransaction<'static>) -> anyhow::Result<()> {
    is_send(of_mysql::whole(1, &mut tx)).await?;
    is_send(of_mysql::alias(1, &mut tx)).await?;
    is_send(of_mysql::connection(1, &mut tx)).await?;
    Ok(tx.commit().await?)
}

#[allow(dead_code, reason = "compiled, and not called")]
async fn of_postgres(mut tx: PgTransaction<'static>) -> anyhow::Result<()> {
    is_send(of_postgres::whole(1, &mut tx)).await?;
    is_send(of_postgres::alias(1, &mut tx)).await?;
    is_send(of_postgres::connection(1, &mut tx)).await?;
    let spawned = tokio::spawn(async move {
        of_postgres::whole(1, &mut tx).await?;
        tx.commit().await?;
        anyhow::Ok(())
    });
    spawned.await?
}

#[tokio::test]
async fn a_job_runs_in_its_callers_transaction() {
    let bank = Bank::open();
    assert_eq!(bank.once(async |tx| whole(1, tx).await).await, (1, 2));
    assert_eq!(bank.once(async |tx| alias(tx, 1).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| connection(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| named("acme", tx).await).await, (4, 1));
    assert_eq!(bank.once(async |tx| mutable(1, tx).await).await, (1, 2));
    assert_eq!(bank.once(async |tx| raw(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| any_database(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| anything(1, tx).await).await, (1, 0));
    assert_eq!(bank.once(async |tx| anything::<SqliteConnection>(2, tx).await).await, (2, 0));
    assert_eq!(bank.once(async |tx| impl_trait(1, tx).await).await, (1, 0));
    assert_eq!(bank.once(async |tx| is_send(boxed(0, tx)).await).await, (0, 0));
    assert_eq!(bank.once(async |tx| is_send(boxed(1, tx)).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| traced_above(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| traced_below(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| traced(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| made_whole(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| made_of_parts(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| our_name(1, tx).await).await, (1, 1));
    assert_eq!(bank.once(async |tx| our_names(1, tx, 2, 3).await).await, (6, 1));
    assert_eq!(bank.once(async |tx| control(0, tx).await).await, (0, 0));
    assert_eq!(bank.once(async |tx| control(1, tx).await).await, (1, 1));
}

#[tokio::test]
async fn an_error_of_the_body_is_judged_and_its_rows_are_undone() {
    let bank = Bank::open();
    assert_eq!(judged_key(&1).expect("a key").to_string(), "transactional:judged:1");
    assert_eq!(bank.once(async |tx| judged(1, 100, tx).await).await, (1, 1));
    let mut connection = bank.connection().await;
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
    let failed = judged(2, 101, &mut tx).await;
    assert_eq!(failed.expect_err("too much").to_string(), "101 is too much for 2");
    let (again, outcome) = with_outcome(judged(2, 101, &mut tx)).await;
    assert!(again.is_err());
    assert_eq!(outcome, Some(Outcome::Refused(ErrorKind::PreviouslyFailed)));
}

#[tokio::test]
async fn a_lent_result_is_handed_on_and_not_replayed() {
    let bank = Bank::open();
    let mut connection = bank.connection().await;
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
    let from = [5, 6, 7];
    assert_eq!(*lent(1, &from, &mut tx).await.expect("a first run"), 6);
    assert!(matches!(lent(1, &from, &mut tx).await, Err(Error::AlreadyCompleted { .. })));
    tx.commit().await.expect("a commit");
}

#[tokio::test]
async fn a_transaction_that_is_not_there_is_told_of() {
    let bank = Bank::open();
    let mut connection = bank.connection().await;
    let error = connection_refused(&mut connection).await;
    assert!(matches!(error, Err(Error::NotInTransaction { .. })), "{error:?}");
}

#[idempotent(key = "transactional:refused", singleton, mode = "transactional", idem = Bank::idem())]
async fn connection_refused(tx: &mut SqliteConnection) -> Result<(), Error> {
    let _ = tx;
    Ok(())
}
