//! The store of `postgres://…`.

mod brief;
mod let_go;
mod phase;
mod pooler;
mod setup;
mod statements;
mod transaction;

use std::{
    any::Any,
    fmt,
    str::FromStr,
    sync::{Arc, OnceLock},
};

use sqlx::{
    PgConnection, Postgres,
    error::DatabaseError,
    postgres::{PgArguments, PgConnectOptions, PgRow},
    query::Query,
};

use self::{pooler::Pooler, statements::Statements, transaction::PostgresTransaction};
use crate::{
    error::Error,
    record::{Record, Status, Version, micros},
    store::{
        Answer, Audit, Audited, Finish, Insert, PhaseWrite, Renew, Renewal, Replace, Reply, Store,
        StoreError, StoreOptions, Watch,
        sql::{
            ATTEMPTS, Batch, Cells, Connections, Dialect, Fault, FinishParams, NewRowParams, RenewParams,
            Sql, Table, audited, bind_audit, bind_expected, bind_finish, bind_row, readable, record,
            restless, unreplaced,
        },
        transaction::{Savepoint, Transaction},
        without_password,
    },
    transact::TransactDatabase,
};

const CLAIMING: &str = "claiming keys";
const REPLACING: &str = "replacing a row";
const FINISHING: &str = "recording endings";
const RENEWING: &str = "renewing leases";
const READING: &str = "reading keys";
const WATCHING: &str = "looking for stale claims";
const PURGING: &str = "purging expired keys";
const FORGETTING: &str = "forgetting a key";

/// Rows in a table of Postgres.
pub struct PostgresStore {
    table: Table,
    /// The statements with the table as it was named.
    unfound: Statements,
    /// The statements with the table in the schema where it was found.
    found: OnceLock<Statements>,
    connections: Connections<Postgres>,
    pooler: Pooler,
    writers: usize,
}

/// A statement with its parameters.
type Statement = Query<'static, Postgres, PgArguments>;

impl PostgresStore {
    /// The store of a URL. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a malformed URL, or a table or schema name that is not an identifier.
    pub fn open(options: &StoreOptions) -> Result<Self, Error> {
        let connect = PgConnectOptions::from_str(&options.url).map_err(|error| {
            Error::config(format!(
                "`{}` is not a Postgres URL ({error}); write `postgres://user@host/database`",
                without_password(&options.url)
            ))
        })?;
        let connect = match connect.get_application_name() {
            Some(_) => connect,
            None => connect.application_name("idem"),
        };
        // We read no floats, and poolers refuse to hear of their digits.
        let connect = connect.extra_float_digits(None);
        let table = Table::of(options, Postgres::QUOTE)?;
        let writers = options.connections.max(1);
        Ok(Self {
            unfound: Statements::of(&table),
            found: OnceLock::new(),
            table,
            pooler: Pooler::of(&connect),
            connections: Connections::new(connect, writers),
            writers,
        })
    }

    fn statements(&self) -> &Statements {
        self.found.get().unwrap_or(&self.unfound)
    }

    /// All rows of a statement, sent again where it collided with another. Waiting for the last row matters: only
    /// then is a write committed.
    async fn run(
        &self,
        context: &'static str,
        statement: impl Fn() -> Statement + Send + Sync,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut rows = self.run_together(context, || vec![statement()]).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// The same for statements that are carried out as one.
    async fn run_together(
        &self,
        context: &'static str,
        statements: impl Fn() -> Vec<Statement> + Send + Sync,
    ) -> Result<Vec<Vec<PgRow>>, StoreError> {
        for _ in 1..ATTEMPTS {
            let mut held = self.connections.take(context).await?;
            let rows = self.send(held.connection(), statements()).await;
            let unsent = rows.as_ref().is_err_and(|error| {
                Fault::of::<Postgres>(error) == Fault::Collision || self.pooler.shows_in(error)
            });
            let rows = held.settle(context, rows);
            if !unsent {
                return rows;
            }
            tokio::task::yield_now().await;
        }
        let mut held = self.connections.take(context).await?;
        let rows = self.send(held.connection(), statements()).await;
        held.settle(context, rows)
    }

    /// Several are one transaction. Behind a pooler each is: nothing else keeps the server process for which a statement
    /// was prepared.
    async fn send(
        &self,
        connection: &mut PgConnection,
        statements: Vec<Statement>,
    ) -> Result<Vec<Vec<PgRow>>, sqlx::Error> {
        let keeps = !self.pooler.is_there();
        if keeps && statements.len() < 2 {
            return send_each(connection, statements, keeps).await;
        }
        let mut transaction = brief::begin(connection).await?;
        let rows = send_each(&mut transaction, statements, keeps).await;
        brief::end(transaction, rows).await
    }

    async fn insert_all(&self, items: &[Insert]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |insert| &insert.key);
        // A key that is in neither half of an answer was committed by somebody else in the meantime.
        for _ in 0..ATTEMPTS {
            if batch.is_done() {
                break;
            }
            let rows = if let Some(insert) = batch.only() {
                self.run(CLAIMING, || insert_statement(&self.statements().insert_one, insert)).await?
            } else {
                let open: Vec<_> = batch.open().collect();
                self.run(CLAIMING, || bind_rows(&self.statements().insert_many, &open)).await?
            };
            answer_claims(&mut batch, &rows)?;
        }
        batch.finish(CLAIMING)
    }

    async fn replace_one(&self, replace: &Replace) -> Result<Answer, StoreError> {
        let statement = || match &replace.audit {
            Some(audit) => bind_audit(replace_statement(&self.statements().replace_audited, replace), audit),
            None => replace_statement(&self.statements().replace, replace),
        };
        for _ in 0..ATTEMPTS {
            if let Some(row) = self.run(REPLACING, statement).await?.first() {
                return Ok(Answer::Written { fence: Cells::of(row).next()? });
            }
            let found = self.records(&[&*replace.key]).await?.pop();
            if let Some(answer) = unreplaced(replace, found) {
                return Ok(answer);
            }
        }
        Err(restless(REPLACING))
    }

    async fn finish_all(&self, items: &[Finish]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |finish| &finish.key);
        for _ in 0..ATTEMPTS {
            if batch.is_done() {
                break;
            }
            let rows = if let Some(finish) = batch.only() {
                self.run(FINISHING, || finish_statement(&self.statements().finish_one, finish)).await?
            } else {
                let open: Vec<_> = batch.open().collect();
                self.run(FINISHING, || bind_endings(&self.statements().finish_many, &open)).await?
            };
            batch.answer_written(&rows)?;
            let unfinished: Vec<_> = batch.open().map(|finish| &*finish.key).collect();
            batch.answer_unfinished(self.records(&unfinished).await?);
        }
        batch.finish(FINISHING)
    }

    async fn renew_all(&self, items: &[Renew]) -> Result<Vec<Renewal>, StoreError> {
        let mut batch = Batch::of(items, |renew| &renew.key);
        if batch.is_done() {
            return batch.finish(RENEWING);
        }
        let open: Vec<_> = batch.open().collect();
        for row in self.run(RENEWING, || bind_leases(&self.statements().renew, &open)).await? {
            batch.answer(Cells::of(&row).next()?, |_| Some(Renewal::Renewed));
        }
        let passed_over: Vec<_> = batch.open().map(|renew| &*renew.key).collect();
        for record in self.records(&passed_over).await? {
            batch.answer(&record.key, |renew| {
                let alive = matches!(record.status, Status::Processing | Status::NeedsReview);
                let ours = record.is_of(&renew.owner, renew.fence);
                Some(if ours && alive { Renewal::Skipped } else { Renewal::Lost })
            });
        }
        batch.answer_rest(|_| Some(Renewal::Lost));
        batch.finish(RENEWING)
    }

    async fn read_all(&self, keys: &[Arc<str>]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut batch = Batch::of(keys, |key| key);
        let open: Vec<_> = batch.open().map(|key| &**key).collect();
        for record in self.records(&open).await? {
            batch.answer(&record.key.clone(), |_| Some(Some(record)));
        }
        batch.answer_rest(|_| Some(None));
        batch.finish(READING)
    }

    async fn records(&self, keys: &[&str]) -> Result<Vec<Record>, StoreError> {
        let statement = || match keys {
            [key] => sqlx::query(&self.statements().read_one).bind(*key),
            _ => sqlx::query(&self.statements().read_many).bind(keys).bind(true),
        };
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.run(READING, statement).await?.iter().map(read_record).collect()
    }

    async fn watched(&self, watch: &Watch) -> Result<Vec<Record>, StoreError> {
        let statement = || {
            sqlx::query(&self.statements().watch)
                .bind(i64::from(watch.limit))
                .bind(micros(watch.foreign_stale_after))
                .bind(watch.untold)
                .bind(true)
        };
        Ok(readable(self.run(WATCHING, statement).await?.iter().map(read_record)))
    }

    async fn audit_of(&self, key: &str) -> Result<Vec<Audited>, StoreError> {
        let rows = self.run(READING, || sqlx::query(&self.statements().audited).bind(key.to_owned())).await?;
        rows.iter().map(audited).collect()
    }

    async fn purge_some(&self, limit: u32) -> Result<u64, StoreError> {
        let statements = self.statements();
        let batch =
            |sql| move || vec![sqlx::query(UNCOMPILED), sqlx::query(sql).bind(i64::from(limit)).bind(true)];
        self.run_together(PURGING, batch(&statements.raise_floor_over_due)).await?;
        let purged = self.run_together(PURGING, batch(&statements.purge)).await?;
        count(purged.last())
    }

    async fn forget_one(&self, key: &str, expected: &Version, audit: &Audit) -> Result<bool, StoreError> {
        let statements = self.statements();
        let raise = || sqlx::query(&statements.raise_floor_over).bind(key.to_owned()).bind(expected.fence);
        self.run(FORGETTING, raise).await?;
        let forget = || bind_audit(bind_expected(sqlx::query(&statements.forget), key, expected), audit);
        let forgotten = self.run(FORGETTING, forget).await?;
        Ok(count(Some(&forgotten))? > 0)
    }
}

/// What keeps a plan from scanning makes it look so dear that it would be compiled, for longer than it runs.
const UNCOMPILED: &str = "SET LOCAL jit = off";

/// The one number that a statement answers with.
fn count(rows: Option<&Vec<PgRow>>) -> Result<u64, StoreError> {
    let count: Option<i64> =
        rows.and_then(|rows| rows.first()).map(|row| Cells::of(row).next()).transpose()?;
    Ok(count.map_or(0, i64::unsigned_abs))
}

async fn send_each(
    connection: &mut PgConnection,
    statements: Vec<Statement>,
    keeps: bool,
) -> Result<Vec<Vec<PgRow>>, sqlx::Error> {
    let mut all = Vec::with_capacity(statements.len());
    for statement in statements {
        all.push(statement.persistent(keeps).fetch_all(&mut *connection).await?);
    }
    Ok(all)
}

fn read_record(row: &PgRow) -> Result<Record, StoreError> {
    let mut cells = Cells::of(row);
    let key = cells.next()?;
    record(&mut cells, key)
}

fn insert_statement(sql: &Sql, insert: &Insert) -> Statement {
    let row = NewRowParams::of(&insert.key, &insert.row);
    bind_row(sqlx::query(sql).bind(row.key), row)
}

fn replace_statement(sql: &Sql, replace: &Replace) -> Statement {
    let query = bind_expected(sqlx::query(sql), &replace.key, &replace.expected);
    bind_row(query, NewRowParams::of(&replace.key, &replace.row))
        .bind(replace.raise_fence)
        .bind(replace.renew_birth)
}

fn finish_statement(sql: &Sql, finish: &Finish) -> Statement {
    bind_finish(sqlx::query(sql), FinishParams::of(finish))
}

/// Answers with the rows of a claim-or-read statement. A key in neither half stays open.
fn answer_claims(batch: &mut Batch<'_, Insert, Answer>, rows: &[PgRow]) -> Result<(), StoreError> {
    for row in rows {
        let mut cells = Cells::of(row);
        let key: &str = cells.next()?;
        match cells.next()? {
            Some(fence) => batch.answer(key, |_| Some(Answer::Written { fence })),
            None => batch.answer_found(record(&mut cells, key.to_owned())?, Insert::made),
        }
    }
    Ok(())
}

/// One array for each column, in the order of [`bind_row`] behind the keys.
fn bind_rows(sql: &Sql, open: &[&Insert]) -> Statement {
    let rows: Vec<_> = open.iter().map(|insert| NewRowParams::of(&insert.key, &insert.row)).collect();
    macro_rules! column {
        ($field:ident) => {
            rows.iter().map(|row| row.$field.as_deref()).collect::<Vec<_>>()
        };
        (= $field:ident) => {
            rows.iter().map(|row| row.$field).collect::<Vec<_>>()
        };
    }
    sqlx::query(sql)
        .bind(column!(= key))
        .bind(column!(= status))
        .bind(column!(job))
        .bind(column!(template))
        .bind(column!(mode))
        .bind(column!(on_stale))
        .bind(column!(owner))
        .bind(column!(= attempt))
        .bind(column!(= takeovers))
        .bind(column!(= lease_in))
        .bind(column!(= lease_at))
        .bind(column!(fingerprint))
        .bind(column!(result))
        .bind(column!(error))
        .bind(column!(worker))
        .bind(column!(= expires_in))
        .bind(column!(= expires_at))
        .bind(column!(= alerted_in))
        .bind(column!(= alerted_at))
        .bind(true)
}

fn bind_endings(sql: &Sql, open: &[&Finish]) -> Statement {
    let endings: Vec<_> = open.iter().map(|finish| FinishParams::of(finish)).collect();
    sqlx::query(sql)
        .bind(endings.iter().map(|ending| ending.key).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.owner).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.fence).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.status).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.result.as_deref()).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.error.as_deref()).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.expires_in).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| ending.withdrawn).collect::<Vec<_>>())
        .bind(true)
}

fn bind_leases(sql: &Sql, open: &[&Renew]) -> Statement {
    let leases: Vec<_> = open.iter().map(|renew| RenewParams::of(renew)).collect();
    sqlx::query(sql)
        .bind(leases.iter().map(|lease| lease.key).collect::<Vec<_>>())
        .bind(leases.iter().map(|lease| lease.owner).collect::<Vec<_>>())
        .bind(leases.iter().map(|lease| lease.fence).collect::<Vec<_>>())
        .bind(leases.iter().map(|lease| lease.lease).collect::<Vec<_>>())
        .bind(true)
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("table", &self.table)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn writers(&self) -> usize {
        self.writers
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

impl TransactDatabase for Postgres {
    fn enlist<'a>(
        connection: &'a mut PgConnection,
        store: &'a dyn Store,
        savepoint: &'a mut Savepoint,
    ) -> Option<Box<dyn Transaction + 'a>> {
        let store = (store as &dyn Any).downcast_ref()?;
        Some(Box::new(PostgresTransaction { store, connection, savepoint }))
    }

    fn abandon(connection: &mut PgConnection, savepoint: &Savepoint) {
        transaction::abandon(connection, savepoint);
    }
}

impl Dialect for Postgres {
    const QUOTE: char = '"';

    fn fault(error: &dyn DatabaseError) -> Fault {
        match error.code().as_deref().unwrap_or_default() {
            // serialization_failure, deadlock_detected
            "40001" | "40P01" => Fault::Collision,
            // lock_not_available
            "55P03" => Fault::Locked,
            // query_canceled, too_many_connections, a full disk and the like
            "57014" => Fault::Busy,
            code if code.starts_with("53") || code.starts_with("58") => Fault::Busy,
            // read_only_sql_transaction: this server is not the primary any more. A prepared statement that the
            // server does not know, knows already, or will not carry out as it was prepared. The rest: the server
            // ended the connection.
            "25006" | "25P03" | "25P04" | "26000" | "42P05" | "0A000" => Fault::Connection,
            code if code.starts_with("08") || code.starts_with("57P") => Fault::Connection,
            _ => Fault::Refused,
        }
    }
}
