//! Where a job runs, and where it refuses to.

use idem_runtime::{ErrorKind, Idem, Transact, idempotent};
use sqlx::{Postgres, Sqlite, SqliteConnection, Transaction};

use super::{
    dialect::Dialect,
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, refused, replayed},
    site::{Site, Worker},
};

/// A job that takes a connection.
#[idempotent(key = "connected:<id>", mode = "transactional", tx = connection, idem = w.idem)]
async fn connected<DB: Dialect>(w: &Worker, connection: &mut DB::Connection, id: &str) -> Result<(), Fault>
where
    DB::Connection: Transact,
{
    w.effect(id);
    put::<DB>(connection, id).await?;
    Ok(())
}

pub(super) async fn a_connection_without_a_transaction_is_refused<DB>(stage: &Stage<'_, DB>)
where
    DB: Dialect,
    DB::Connection: Transact,
{
    let mut connection = stage.connection().await;
    let call = connected::<DB>(&stage.w, &mut connection, "x");
    let error = refused(ErrorKind::NotInTransaction, call).await.idem();
    assert!(!error.is_retryable() && error.to_string().contains("begin"), "{error}");
    assert_eq!(stage.w.effects("x"), 0);

    let mut tx = DB::begin_on(&mut connection).await;
    executed(connected::<DB>(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("connected:x", "x").await;

    // A transaction that ended is none.
    for _ in 0..20 {
        drop(DB::begin_on(&mut connection).await);
        refused(ErrorKind::NotInTransaction, connected::<DB>(&stage.w, &mut connection, "y")).await;
    }
    stage.lacks("connected:y", "y").await;
    assert_eq!(stage.w.effects("y"), 0);
}

/// A job of any database, whose keys are where it is told.
#[idempotent(key = "placed:<id>", mode = "transactional", idem = idem)]
async fn placed<DB: Dialect>(idem: &Idem, tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), Fault> {
    put::<DB>(tx, id).await?;
    Ok(())
}

/// Keys in one place and rows in another cannot appear together.
async fn is_refused<DB: Dialect>(stage: &Stage<'_, DB>, idem: &Idem) {
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    let error = refused(ErrorKind::Config, placed(idem, &mut tx, "x")).await.idem();
    assert!(error.to_string().contains("one database"), "{error}");
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    assert_eq!((stage.rows("before").await, stage.rows("x").await, stage.rows("after").await), (1, 0, 1));
    assert_eq!(idem.lookup("placed:x").await.expect("a look"), None);
}

pub(super) async fn keys_in_memory_are_refused<DB: Dialect>(stage: &Stage<'_, DB>) {
    is_refused(stage, &Idem::connect("memory:").await.expect("memory")).await;
}

pub(super) async fn keys_in_a_database_of_another_kind_are_refused(stage: &Stage<'_, Postgres>) {
    is_refused(stage, &stage.elsewhere("sqlite::memory:").await).await;
    let site = Site::on(Sqlite::BACKEND);
    is_refused(&Stage::<Sqlite>::on(&site).await, &stage.w.idem).await;
}

/// A transaction of another database of the same kind finds no table of keys there.
pub(super) async fn a_database_without_the_table_is_refused<DB: Dialect>(stage: &Stage<'_, DB>) {
    let there = Site::on(DB::BACKEND);
    let idem = stage.elsewhere(there.database.url()).await;
    stage.execute("DROP TABLE idempotency_keys").await;
    let mut tx = stage.begin().await;
    put::<DB>(&mut tx, "before").await.expect("a row");
    let error = refused(ErrorKind::Store, placed(&idem, &mut tx, "x")).await.idem();
    assert!(error.to_string().contains("idempotency_keys"), "{error}");
    put::<DB>(&mut tx, "after").await.expect("a row");
    tx.commit().await.expect("a commit");
    assert_eq!((stage.rows("before").await, stage.rows("x").await, stage.rows("after").await), (1, 0, 1));
}

/// A row of a database in SQLite's memory is reached through its own connection alone.
pub(super) async fn a_database_in_memory_is_another_for_each_connection(stage: &Stage<'_, Sqlite>) {
    let idem = stage.elsewhere("sqlite::memory:").await;
    let mut connection: SqliteConnection = Sqlite::connect("sqlite::memory:").await;
    Sqlite::run(&mut connection, "CREATE TABLE effects (what text)").await.expect("a table");
    let mut tx = Sqlite::begin_on(&mut connection).await;
    refused(ErrorKind::Store, placed(&idem, &mut tx, "x")).await;
    assert_eq!(Sqlite::number(&mut tx, "SELECT count(*) FROM effects").await.expect("a count"), 0);
}

pub(super) async fn a_namespace_and_a_table_of_ones_own_are_used<DB: Dialect>(stage: &Stage<'_, DB>) {
    let url = stage.site.database.url();
    let builder = Idem::builder().url(url).namespace("tenant").table("own_keys");
    let idem = builder.connect().await.expect("a table of one's own");
    let mut tx = stage.begin().await;
    executed(placed(&idem, &mut tx, "x")).await;
    executed(placed(&stage.w.idem, &mut tx, "x")).await;
    replayed(placed(&idem, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    assert_eq!(stage.rows("x").await, 2, "one for each");
    let own = stage.number("SELECT count(*) FROM own_keys WHERE status = 'completed'").await;
    let all = stage.number("SELECT count(*) FROM idempotency_keys WHERE status = 'completed'").await;
    assert_eq!((own, all), (1, 1));
    assert!(
        idem.lookup("placed:x").await.expect("a look").is_some_and(|row| row.key.starts_with("tenant%:"))
    );
}

pub(super) async fn a_schema_of_ones_own_is_used(stage: &Stage<'_, Postgres>) {
    stage.execute("CREATE SCHEMA jobs").await;
    let builder = Idem::builder().url(stage.site.database.url()).schema("jobs").table("own_keys");
    let idem = builder.connect().await.expect("a table of one's own");
    let mut tx = stage.begin().await;
    executed(placed(&idem, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    assert_eq!(stage.number("SELECT count(*) FROM jobs.own_keys WHERE status = 'completed'").await, 1);
    assert_eq!(stage.number("SELECT count(*) FROM idempotency_keys").await, 0);
}
