//! The store of `sqlite://…`: one writer, one reader, no server.

mod phase;
mod setup;
mod statements;
mod target;
mod transaction;

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection, Row, Sqlite, SqliteConnection,
    error::DatabaseError,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous},
};
use tokio::sync::OnceCell;

use self::{statements::Statements, target::Target, transaction::SqliteTransaction};
use crate::{
    error::Error,
    record::{Record, Version, micros},
    store::{
        Answer, Audit, Audited, Finish, Insert, PhaseWrite, Renew, Renewal, Replace, Reply, Store,
        StoreError, StoreOptions, Watch,
        sql::{
            ATTEMPTS, Batch, Cells, Connections, Dialect, Fault, FinishParams, Held, NewRowParams,
            RenewParams, Sql, Table, audited, bind_audit, bind_expected, bind_finish, bind_row, explain,
            readable, record, restless, to_json, unreplaced,
        },
        transaction::{Savepoint, Transaction},
    },
    transact::TransactDatabase,
};

/// SQLite waits for a foreign writer in the way of the connection's thread; longer waits are for the caller to make,
/// who can give up.
const BUSY_TIMEOUT: Duration = Duration::from_millis(200);

const CLAIMING: &str = "claiming keys";
const REPLACING: &str = "replacing a row";
const FINISHING: &str = "recording endings";
const RENEWING: &str = "renewing leases";
const READING: &str = "reading keys";
const WATCHING: &str = "looking for stale claims";
const PURGING: &str = "purging expired keys";
const FORGETTING: &str = "forgetting a key";

/// Rows in a SQLite file, or in SQLite's memory.
pub struct SqliteStore {
    table: Table,
    statements: Statements,
    writer: Connections<Sqlite>,
    /// `None` in memory, where a second connection would only wait for the first.
    reader: Option<Connections<Sqlite>>,
    memory: Option<Memory>,
    read_only: bool,
}

/// A database in memory lives as long as a connection to it: this one does nothing else, so that nothing closes it.
struct Memory {
    options: SqliteConnectOptions,
    anchor: OnceCell<Mutex<SqliteConnection>>,
}

impl SqliteStore {
    /// The store of a URL. Nothing is opened yet.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a malformed URL, or a table name that is not an identifier.
    pub fn open(options: &StoreOptions) -> Result<Self, Error> {
        let target = Target::of(&options.url)?;
        let mut table = Table::of(options, Sqlite::QUOTE)?;
        match table.schema() {
            None => {}
            Some("main") => table = table.without_schema(),
            Some(schema) => {
                return Err(Error::config(format!(
                    "SQLite has no schema `{schema}`; leave the schema out, or name the table otherwise"
                )));
            }
        }
        let connect = target.options.busy_timeout(BUSY_TIMEOUT);
        let (connect, reader, memory) = if target.in_memory {
            let memory = Memory { options: connect.clone(), anchor: OnceCell::new() };
            (connect, None, Some(memory))
        } else {
            let connect = connect.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
            (connect.clone(), Some(Connections::new(connect, 1)), None)
        };
        Ok(Self {
            statements: Statements::of(&table),
            table,
            writer: Connections::new(connect, 1),
            reader,
            memory,
            read_only: target.read_only,
        })
    }

    async fn writer(&self, context: &'static str) -> Result<Held<'_, Sqlite>, StoreError> {
        if let Some(memory) = &self.memory {
            let opened =
                memory.anchor.get_or_try_init(async || memory.options.connect().await.map(Mutex::new));
            opened.await.map_err(|error| explain::<Sqlite>(context, error))?;
        }
        self.writer.take(context).await
    }

    /// All rows of a statement. Waiting for the last one matters: only then is a write committed.
    async fn write(&self, context: &'static str, query: Statement) -> Result<Vec<SqliteRow>, StoreError> {
        let mut held = self.writer(context).await?;
        let rows = query.fetch_all(held.connection()).await;
        held.settle(context, rows)
    }

    async fn records<'a>(
        &self,
        keys: impl Iterator<Item = &'a str> + Send,
    ) -> Result<Vec<Record>, StoreError> {
        let keys: Vec<_> = keys.collect();
        let query = match keys[..] {
            [] => return Ok(Vec::new()),
            [key] => sqlx::query(&self.statements.read_one).bind(key),
            _ => sqlx::query(&self.statements.read_many).bind(to_json(READING, &keys)?),
        };
        self.read_rows(READING, query).await?.iter().map(read_record).collect()
    }

    /// All rows of a statement that writes nothing.
    async fn read_rows(&self, context: &'static str, query: Statement) -> Result<Vec<SqliteRow>, StoreError> {
        let Some(reader) = &self.reader else { return self.write(context, query).await };
        let mut held = reader.take(context).await?;
        let rows = query.fetch_all(held.connection()).await;
        held.settle(context, rows)
    }

    async fn watched(&self, watch: &Watch) -> Result<Vec<Record>, StoreError> {
        let query = sqlx::query(&self.statements.watch)
            .bind(watch.limit)
            .bind(micros(watch.foreign_stale_after))
            .bind(watch.untold);
        Ok(readable(self.read_rows(WATCHING, query).await?.iter().map(read_record)))
    }

    async fn audit_of(&self, key: &str) -> Result<Vec<Audited>, StoreError> {
        let query = sqlx::query(&self.statements.audited).bind(key.to_owned());
        self.read_rows(READING, query).await?.iter().map(audited).collect()
    }

    async fn insert_all(&self, items: &[Insert]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |insert| &insert.key);
        for _ in 0..ATTEMPTS {
            // Read first: the repeat of a finished key writes nothing and waits for no foreign writer.
            for record in self.records(batch.open().map(|insert| &*insert.key)).await? {
                batch.answer_found(record, Insert::made);
            }
            if batch.is_done() {
                break;
            }
            let query = if let Some(insert) = batch.only() {
                self.insert_statement(insert)
            } else {
                let rows: Vec<_> =
                    batch.open().map(|insert| NewRowParams::of(&insert.key, &insert.row)).collect();
                sqlx::query(&self.statements.insert_many).bind(to_json(CLAIMING, &rows)?)
            };
            batch.answer_written(&self.write(CLAIMING, query).await?)?;
            if batch.is_done() {
                break;
            }
        }
        batch.finish(CLAIMING)
    }

    async fn replace_one(&self, replace: &Replace) -> Result<Answer, StoreError> {
        for _ in 0..ATTEMPTS {
            if let Some(fence) = self.try_replace(replace).await? {
                return Ok(Answer::Written { fence });
            }
            let found = self.records(std::iter::once(&*replace.key)).await?.pop();
            if let Some(answer) = unreplaced(replace, found) {
                return Ok(answer);
            }
        }
        Err(restless(REPLACING))
    }

    async fn try_replace(&self, replace: &Replace) -> Result<Option<i64>, StoreError> {
        let update = || self.replace_statement(replace);
        let rows = match &replace.audit {
            None => self.write(REPLACING, update()).await?,
            Some(audit) => {
                let mut held = self.writer(REPLACING).await?;
                let done = async {
                    let mut transaction = held.connection().begin_with(BEGIN).await?;
                    let rows = update().fetch_all(&mut *transaction).await?;
                    if !rows.is_empty() {
                        self.audit_statement(&replace.key, audit).execute(&mut *transaction).await?;
                    }
                    transaction.commit().await?;
                    Ok(rows)
                };
                let done = done.await;
                held.settle(REPLACING, done)?
            }
        };
        rows.first().map(|row| Cells::of(row).next()).transpose()
    }

    fn insert_statement(&self, insert: &Insert) -> Statement {
        insert_statement(&self.statements.insert_one, NewRowParams::of(&insert.key, &insert.row))
    }

    fn replace_statement(&self, replace: &Replace) -> Statement {
        let row = NewRowParams::of(&replace.key, &replace.row);
        replace_statement(&self.statements.replace, replace, row)
    }

    fn finish_statement(&self, finish: &Finish) -> Statement {
        bind_finish(sqlx::query(&self.statements.finish_one), FinishParams::of(finish))
    }

    fn audit_statement(&self, key: &str, audit: &Audit) -> Statement {
        bind_audit(sqlx::query(&self.statements.audit).bind(key), audit)
    }

    async fn finish_all(&self, items: &[Finish]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |finish| &finish.key);
        for _ in 0..ATTEMPTS {
            let query = if let Some(finish) = batch.only() {
                self.finish_statement(finish)
            } else {
                let endings: Vec<_> = batch.open().map(FinishParams::of).collect();
                sqlx::query(&self.statements.finish_many).bind(to_json(FINISHING, &endings)?)
            };
            batch.answer_written(&self.write(FINISHING, query).await?)?;
            if batch.is_done() {
                break;
            }
            let found = self.records(batch.open().map(|finish| &*finish.key)).await?;
            batch.answer_unfinished(found);
            if batch.is_done() {
                break;
            }
        }
        batch.finish(FINISHING)
    }

    async fn renew_all(&self, items: &[Renew]) -> Result<Vec<Renewal>, StoreError> {
        let mut batch = Batch::of(items, |renew| &renew.key);
        let leases: Vec<_> = batch.open().map(RenewParams::of).collect();
        let query = sqlx::query(&self.statements.renew).bind(to_json(RENEWING, &leases)?);
        for row in self.write(RENEWING, query).await? {
            batch.answer(Cells::of(&row).next()?, |_| Some(Renewal::Renewed));
        }
        batch.answer_rest(|_| Some(Renewal::Lost));
        batch.finish(RENEWING)
    }

    async fn read_all(&self, keys: &[Arc<str>]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut batch = Batch::of(keys, |key| key);
        for record in self.records(batch.open().map(|key| &**key)).await? {
            batch.answer(&record.key.clone(), |_| Some(Some(record)));
        }
        batch.answer_rest(|_| Some(None));
        batch.finish(READING)
    }

    async fn purge_some(&self, limit: u32) -> Result<u64, StoreError> {
        self.delete(PURGING, sqlx::query(&self.statements.purge).bind(limit), Vec::new()).await
    }

    async fn forget_one(&self, key: &str, expected: &Version, audit: &Audit) -> Result<bool, StoreError> {
        let forget = bind_expected(sqlx::query(&self.statements.forget), key, expected);
        let phases = sqlx::query(&self.statements.forget_phases).bind(key.to_owned());
        Ok(self.delete(FORGETTING, forget, vec![phases, self.audit_statement(key, audit)]).await? > 0)
    }

    /// Deletes rows, carries out what goes with that, and lifts the floor over the fences of all that is gone, so that no
    /// later row of these keys has a lower one. Answers how many rows there were, phases not counted.
    async fn delete(
        &self,
        context: &'static str,
        delete: Statement,
        others: Vec<Statement>,
    ) -> Result<u64, StoreError> {
        let mut held = self.writer(context).await?;
        let done = async {
            let mut transaction = held.connection().begin_with(BEGIN).await?;
            let mut gone = delete.fetch_all(&mut *transaction).await?;
            if !gone.is_empty() {
                for other in others {
                    gone.extend(other.fetch_all(&mut *transaction).await?);
                }
            }
            let gone: Vec<(bool, i64)> = gone
                .iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                .collect::<Result<_, sqlx::Error>>()?;
            if let Some(highest) = gone.iter().map(|(_, fence)| fence).max() {
                let raise = sqlx::query(&self.statements.raise_floor).bind(highest);
                raise.execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(gone.iter().filter(|(counts, _)| *counts).count() as u64)
        };
        let done = done.await;
        held.settle(context, done)
    }
}

fn read_record(row: &SqliteRow) -> Result<Record, StoreError> {
    let mut cells = Cells::of(row);
    let key = cells.next()?;
    record(&mut cells, key)
}

fn insert_statement(sql: &Sql, row: NewRowParams<'_>) -> Statement {
    bind_row(sqlx::query(sql).bind(row.key), row)
}

fn replace_statement(sql: &Sql, replace: &Replace, row: NewRowParams<'_>) -> Statement {
    let query = bind_row(bind_expected(sqlx::query(sql), &replace.key, &replace.expected), row);
    query.bind(replace.raise_fence).bind(replace.renew_birth)
}

/// A statement with its parameters.
type Statement = Query<'static, Sqlite, SqliteArguments>;

/// A transaction that will write takes its lock at once: one that began by reading could not wait for it.
const BEGIN: &str = "BEGIN IMMEDIATE";

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("table", &self.table)
            .field("writer", &self.writer)
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn writers(&self) -> usize {
        1
    }

    fn prepare(&self, create: bool) -> Reply<'_, ()> {
        Box::pin(self.set_up(create))
    }

    fn ddl(&self) -> String {
        statements::ddl(&self.table)
    }

    fn insert<'a>(&'a self, batch: &'a [Insert]) -> Reply<'a, Vec<Answer>> {
        Box::pin(self.insert_all(batch))
    }

    fn replace<'a>(&'a self, replacement: &'a Replace) -> Reply<'a, Answer> {
        Box::pin(self.replace_one(replacement))
    }

    fn finish<'a>(&'a self, batch: &'a [Finish]) -> Reply<'a, Vec<Answer>> {
        Box::pin(self.finish_all(batch))
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Reply<'a, Vec<Renewal>> {
        Box::pin(self.renew_all(batch))
    }

    fn phase<'a>(&'a self, batch: &'a [PhaseWrite]) -> Reply<'a, Vec<Answer>> {
        Box::pin(self.phase_all(batch))
    }

    fn between<'a>(&'a self, after: &'a str, before: &'a str, limit: u32) -> Reply<'a, Vec<Record>> {
        Box::pin(self.range(after, before, limit))
    }

    fn read<'a>(&'a self, keys: &'a [Arc<str>]) -> Reply<'a, Vec<Option<Record>>> {
        Box::pin(self.read_all(keys))
    }

    fn watch<'a>(&'a self, watch: &'a Watch) -> Reply<'a, Vec<Record>> {
        Box::pin(self.watched(watch))
    }

    fn audit<'a>(&'a self, key: &'a str) -> Reply<'a, Vec<Audited>> {
        Box::pin(self.audit_of(key))
    }

    fn purge(&self, limit: u32) -> Reply<'_, u64> {
        Box::pin(self.purge_some(limit))
    }

    fn forget<'a>(&'a self, key: &'a str, expected: &'a Version, audit: &'a Audit) -> Reply<'a, bool> {
        Box::pin(self.forget_one(key, expected, audit))
    }
}

impl TransactDatabase for Sqlite {
    fn enlist<'a>(
        connection: &'a mut SqliteConnection,
        store: &'a dyn Store,
        savepoint: &'a mut Savepoint,
    ) -> Option<Box<dyn Transaction + 'a>> {
        let store = (store as &dyn Any).downcast_ref()?;
        Some(Box::new(SqliteTransaction { store, connection, savepoint }))
    }

    fn abandon(connection: &mut SqliteConnection, savepoint: &Savepoint) {
        transaction::abandon(connection, savepoint);
    }
}

impl Dialect for Sqlite {
    const QUOTE: char = '"';

    fn fault(error: &dyn DatabaseError) -> Fault {
        let code = error.code().unwrap_or_default();
        // The lower byte is the primary code; the rest refines it.
        match code.parse::<i32>().map(|code| (code & 0xff, code)) {
            // SQLITE_READONLY_DBMOVED, SQLITE_IOERR
            Ok((_, 1032) | (10, _)) => Fault::Connection,
            // SQLITE_LOCKED: another connection of this process, in a shared cache.
            Ok((6, _)) => Fault::Locked,
            // SQLITE_SCHEMA
            Ok((17, _)) => Fault::Collision,
            // SQLITE_BUSY, NOMEM, INTERRUPT, FULL, PROTOCOL
            Ok((5 | 7 | 9 | 13 | 15, _)) => Fault::Busy,
            _ => Fault::Refused,
        }
    }
}
