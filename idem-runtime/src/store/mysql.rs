//! The store of `mysql://…` and `mariadb://…`.
//!
//! No write that both servers know answers with its rows, so an insert is followed by a look, where the owner counts.
//! A replacement and an ending name owner and fence in their condition: that they met their row is proof enough.

mod fault;
mod phase;
mod purge;
mod retry;
mod server;
mod setup;
mod statements;
mod transaction;
mod watch;
mod whole;

use std::{any::Any, collections::HashSet, fmt, str::FromStr, sync::Arc};

use sqlx::{
    Connection, MySql, MySqlConnection,
    error::DatabaseError,
    mysql::{MySqlArguments, MySqlConnectOptions, MySqlQueryResult, MySqlRow},
    query::Query,
};
use tokio::sync::OnceCell;

use self::{
    retry::{Retry, fault},
    server::Server,
    statements::{Statements, fence_told},
    transaction::MySqlTransaction,
};
use crate::{
    error::Error,
    record::{Record, Status, Version},
    store::{
        Answer, Audit, Audited, ErrorClass, Finish, Insert, PhaseWrite, Renew, Renewal, Replace, Reply,
        Store, StoreError, StoreOptions, Watch,
        sql::{
            ATTEMPTS, Batch, Cells, Connections, Dialect, FinishParams, Held, NewRowParams, RenewParams, Sql,
            Table, bind_audit, bind_expected, bind_row, documents, record, restless, to_json, unreplaced,
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

/// Rows in a table of MySQL or MariaDB.
pub struct MySqlStore {
    table: Table,
    /// Those of a server that refuses to wait when it is told so, and those of one that is asked beforehand.
    hasty: Statements,
    plain: Statements,
    connections: Connections<MySql>,
    server: OnceCell<Server>,
    writers: usize,
}

/// A statement with its parameters.
type Statement = Query<'static, MySql, MySqlArguments>;

impl MySqlStore {
    /// The store of a URL. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a malformed URL or one without a database, or a table or schema name that is not an
    /// identifier.
    pub fn open(options: &StoreOptions) -> Result<Self, Error> {
        let connect = MySqlConnectOptions::from_str(&options.url).map_err(|error| {
            Error::config(format!(
                "`{}` is not a URL of MySQL or MariaDB ({error}); write `mysql://user@host/database`",
                without_password(&options.url)
            ))
        })?;
        let table = Table::of(options, MySql::QUOTE)?;
        if connect.get_database().is_none() && table.schema().is_none() {
            return Err(Error::config(format!(
                "`{}` names no database; write `mysql://user@host/database`",
                without_password(&options.url)
            )));
        }
        // Names and time zone stay set: a server may be told to take no notice of the character set that a client
        // announces, and in UTC no hour comes twice.
        let connect = connect.pipes_as_concat(false).no_engine_substitution(false);
        let writers = options.connections.max(1);
        Ok(Self {
            hasty: Statements::of(&table, Server::MariaDb),
            plain: Statements::of(&table, Server::MySql),
            table,
            connections: Connections::new(connect, writers),
            server: OnceCell::new(),
            writers,
        })
    }

    fn statements(&self, server: Server) -> &Statements {
        match server {
            Server::MariaDb => &self.hasty,
            Server::MySql => &self.plain,
        }
    }

    /// A connection, and what kind of server it leads to.
    async fn take(&self, context: &'static str) -> Result<(Held<'_, MySql>, Server), StoreError> {
        let mut held = self.connections.take(context).await?;
        if let Some(server) = self.server.get() {
            return Ok((held, *server));
        }
        let version = Server::version(held.connection()).await;
        match version.map(|version| Server::of(&version)) {
            Ok(server) => Ok((held, *self.server.get_or_init(async || server).await)),
            Err(error) => held.settle(context, Err(error)),
        }
    }

    /// All rows of a statement that only reads, or locks for no longer than it runs.
    async fn rows(
        &self,
        context: &'static str,
        statement: impl Fn(&Statements) -> Statement + Send + Sync,
    ) -> Result<Vec<MySqlRow>, StoreError> {
        let mut retry = Retry::default();
        loop {
            let (mut held, server) = self.take(context).await?;
            let rows = statement(self.statements(server)).fetch_all(held.connection()).await;
            let fault = fault(&rows);
            let rows = held.settle(context, rows);
            if !retry.after(fault).await {
                return rows;
            }
        }
    }

    /// A statement that writes these keys.
    async fn write(
        &self,
        context: &'static str,
        keys: &[&str],
        statement: impl Fn(&Statements) -> Statement + Send + Sync,
    ) -> Result<MySqlQueryResult, StoreError> {
        self.write_with(context, keys, statement, |_| Vec::new()).await
    }

    /// A statement that writes these keys without waiting for locks, and, where it met a row, others with it in the
    /// same transaction.
    async fn write_with(
        &self,
        context: &'static str,
        keys: &[&str],
        statement: impl Fn(&Statements) -> Statement + Send + Sync,
        others: impl Fn(&Statements) -> Vec<Statement> + Send + Sync,
    ) -> Result<MySqlQueryResult, StoreError> {
        let mut retry = Retry::default();
        loop {
            let (mut held, server) = self.take(context).await?;
            let sql = self.statements(server);
            let done = match probe(held.connection(), sql, server, keys).await {
                Ok(()) => write_once(held.connection(), statement(sql), others(sql)).await,
                Err(error) => Err(error),
            };
            let fault = fault(&done);
            let done = held.settle(context, done);
            if !retry.after(fault).await {
                return done;
            }
        }
    }

    /// The rows of keys, each with the floor of the fences at the time.
    async fn look(&self, keys: &[&str]) -> Result<Vec<(Record, i64)>, StoreError> {
        let rows = match *keys {
            [] => return Ok(Vec::new()),
            [key] => self.rows(READING, |sql| sqlx::query(&sql.read_one).bind(key.to_owned())).await?,
            _ => {
                let keys = to_json(READING, &keys)?;
                self.rows(READING, |sql| sqlx::query(&sql.read_many).bind(keys.clone())).await?
            }
        };
        rows.iter()
            .map(|row| {
                let mut cells = Cells::of(row);
                let key = cells.next()?;
                let floor = cells.next()?;
                Ok((record(&mut cells, key)?, floor))
            })
            .collect()
    }

    async fn records(&self, keys: &[&str]) -> Result<Vec<Record>, StoreError> {
        Ok(self.look(keys).await?.into_iter().map(|(record, _)| record).collect())
    }

    /// Looks, inserts what is not there, and looks again. The first look makes the repeat of a finished key a pure
    /// read that waits for no lock; the last one tells the fences.
    async fn insert_all(&self, items: &[Insert]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |insert| &insert.key);
        let mut floor = 0;
        let mut inserted: Result<(), StoreError> = Ok(());
        for attempt in 0..ATTEMPTS {
            // A claim without owner is known for ours by nothing but the success that was just told.
            let told = attempt > 0 && inserted.is_ok();
            let made = |insert: &Insert, record: &Record| {
                insert.made(record) || (told && insert.row.owner.is_none() && record.owner.is_none())
            };
            let open: Vec<_> = batch.open().map(|insert| &*insert.key).collect();
            for (record, lowest) in self.look(&open).await? {
                floor = floor.max(lowest);
                if record.fence <= floor
                    && let Some(insert) = batch.open().find(|insert| *insert.key == *record.key)
                    && made(insert, &record)
                {
                    self.lift(insert, record.fence, floor).await?;
                } else {
                    batch.answer_found(record, made);
                }
            }
            if batch.is_done() {
                break;
            }
            // Those that were there by now are answered all the same.
            if let Err(error) = &inserted
                && error.class == ErrorClass::Locked
            {
                break;
            }
            inserted = match self.insert_open(&batch, floor).await {
                Err(error) if error.class != ErrorClass::Locked && !is_duplicate(&error) => {
                    return Err(error);
                }
                inserted => inserted,
            };
        }
        if !batch.is_done() {
            inserted?;
        }
        batch.finish(CLAIMING)
    }

    async fn insert_open(&self, batch: &Batch<'_, Insert, Answer>, floor: i64) -> Result<(), StoreError> {
        if let Some(insert) = batch.only() {
            let one = |sql: &Statements| insert_statement(&sql.insert_one, insert, floor);
            return self.write(CLAIMING, &[&insert.key], one).await.map(drop);
        }
        let rows: Vec<_> = batch.open().map(|insert| NewRowParams::of(&insert.key, &insert.row)).collect();
        for (rows, json) in documents(CLAIMING, &rows)? {
            let keys: Vec<_> = rows.iter().map(|row| row.key).collect();
            let many = |sql: &Statements| sqlx::query(&sql.insert_many).bind(floor).bind(json.clone());
            self.write(CLAIMING, &keys, many).await?;
        }
        Ok(())
    }

    /// Raises the fence of a claim of ours over the floor, before anybody has heard of it: the row that had this key
    /// earlier may have had any fence up to there.
    async fn lift(&self, insert: &Insert, fence: i64, floor: i64) -> Result<(), StoreError> {
        let lift = |sql: &Statements| lift_statement(&sql.lift, insert, fence, floor);
        self.write(CLAIMING, &[&insert.key], lift).await.map(drop)
    }

    async fn replace_one(&self, replace: &Replace) -> Result<Answer, StoreError> {
        for _ in 0..ATTEMPTS {
            let update = |sql: &Statements| replace_statement(sql.replacing(replace), replace);
            let audit = |sql: &Statements| {
                let audit = replace.audit.iter();
                audit.map(|audit| audit_statement(sql, &replace.key, audit)).collect()
            };
            let replaced = self.write_with(REPLACING, &[&replace.key], update, audit).await?;
            let is_done = replaced.rows_affected() > 0;
            if is_done && let Some(fence) = fence_told(replace, replaced.last_insert_id()) {
                return Ok(Answer::Written { fence });
            }
            let found = self.records(&[&*replace.key]).await?.pop();
            // It was done, and only the fence was not told: also where the owner is as before, which tells nobody apart.
            if is_done
                && let Some(record) = &found
                && (&record.owner, &record.status) == (&replace.row.owner, &replace.row.status)
            {
                return Ok(Answer::Written { fence: record.fence });
            }
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
            if self.finish_open(&batch).await? {
                batch.answer_rest(|finish| Some(Answer::Written { fence: finish.fence_after() }));
                break;
            }
            let unfinished: Vec<_> = batch.open().map(|finish| &*finish.key).collect();
            batch.answer_unfinished(self.records(&unfinished).await?);
        }
        batch.finish(FINISHING)
    }

    /// Whether every open ending met its row.
    async fn finish_open(&self, batch: &Batch<'_, Finish, Answer>) -> Result<bool, StoreError> {
        if let Some(finish) = batch.only() {
            let one = |sql: &Statements| finish_statement(&sql.finish_one, finish);
            let done = self.write(FINISHING, &[&finish.key], one).await?;
            return Ok(done.rows_affected() == 1);
        }
        let endings: Vec<_> = batch.open().map(FinishParams::of).collect();
        let mut met = 0;
        for (endings, json) in documents(FINISHING, &endings)? {
            let keys: Vec<_> = endings.iter().map(|ending| ending.key).collect();
            let many = |sql: &Statements| sqlx::query(&sql.finish_many).bind(json.clone());
            met += self.write(FINISHING, &keys, many).await?.rows_affected();
        }
        Ok(met == endings.len() as u64)
    }

    /// Asks which rows nobody holds locked, and renews those: no `UPDATE` passes over a locked row by itself.
    async fn renew_all(&self, items: &[Renew]) -> Result<Vec<Renewal>, StoreError> {
        let mut batch = Batch::of(items, |renew| &renew.key);
        if batch.is_done() {
            return batch.finish(RENEWING);
        }
        let leases: Vec<_> = batch.open().map(RenewParams::of).collect();
        let mut renewed = HashSet::new();
        for (leases, json) in documents(RENEWING, &leases)? {
            renewed.extend(self.renew_free(leases, &json).await?);
        }
        let open: Vec<_> = batch.open().map(|renew| &*renew.key).collect();
        for record in self.records(&open).await? {
            batch.answer(&record.key, |renew| {
                let alive = matches!(record.status, Status::Processing | Status::NeedsReview);
                let ours = record.is_of(&renew.owner, renew.fence);
                Some(match ours && alive {
                    true if renewed.contains(&record.key) => Renewal::Renewed,
                    true => Renewal::Skipped,
                    false => Renewal::Lost,
                })
            });
        }
        batch.answer_rest(|_| Some(Renewal::Lost));
        batch.finish(RENEWING)
    }

    /// The keys whose leases were renewed, if they were still ours.
    async fn renew_free(&self, leases: &[RenewParams<'_>], json: &str) -> Result<Vec<String>, StoreError> {
        let mut locked = None;
        for _ in 0..ATTEMPTS {
            let renewable = |sql: &Statements| sqlx::query(&sql.renewable).bind(json.to_owned());
            let rows = self.rows(RENEWING, renewable).await?;
            let free: Vec<String> = rows.iter().map(|row| Cells::of(row).next()).collect::<Result<_, _>>()?;
            if free.is_empty() {
                return Ok(free);
            }
            let keys: HashSet<&str> = free.iter().map(String::as_str).collect();
            let due: Vec<_> = leases.iter().filter(|lease| keys.contains(lease.key)).collect();
            let due = to_json(RENEWING, &due)?;
            match self.write(RENEWING, &[], |sql| sqlx::query(&sql.renew).bind(due.clone())).await {
                Ok(_) => return Ok(free),
                Err(error) if error.class == ErrorClass::Locked => locked = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(locked.unwrap_or_else(|| restless(RENEWING)))
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
}

/// Whether a key was there already: nothing was inserted.
fn is_duplicate(error: &StoreError) -> bool {
    let source = error.source.downcast_ref::<sqlx::Error>();
    source.and_then(sqlx::Error::as_database_error).is_some_and(DatabaseError::is_unique_violation)
}

async fn write_once(
    connection: &mut MySqlConnection,
    statement: Statement,
    others: Vec<Statement>,
) -> Result<MySqlQueryResult, sqlx::Error> {
    if others.is_empty() {
        return statement.execute(connection).await;
    }
    let mut transaction = connection.begin().await?;
    let done = async {
        let done = statement.execute(&mut *transaction).await?;
        if done.rows_affected() > 0 {
            for other in others {
                other.execute(&mut *transaction).await?;
            }
        }
        Ok(done)
    };
    let done = done.await;
    end(transaction, done).await
}

/// Ends a transaction at once, as its work ended; dropped, it would hold its locks until the connection is used again.
async fn end<T>(
    transaction: sqlx::Transaction<'_, MySql>,
    result: Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    match result {
        Ok(value) => transaction.commit().await.map(|()| value),
        Err(error) => transaction.rollback().await.and(Err(error)),
    }
}

/// Fails where somebody holds one of the rows, on a server whose writes would wait for them.
async fn probe(
    connection: &mut MySqlConnection,
    sql: &Statements,
    server: Server,
    keys: &[&str],
) -> Result<(), sqlx::Error> {
    if server == Server::MariaDb || keys.is_empty() {
        return Ok(());
    }
    let keys = serde_json::to_string(keys).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query(&sql.probe).bind(keys).fetch_all(connection).await.map(drop)
}

fn insert_statement(sql: &Sql, insert: &Insert, floor: i64) -> Statement {
    insert_row(sql, insert, NewRowParams::of(&insert.key, &insert.row), floor)
}

/// An insert with what its fence is made of.
fn insert_row(sql: &Sql, insert: &Insert, row: NewRowParams<'_>, fence: i64) -> Statement {
    bind_row(sqlx::query(sql).bind(row.key), row).bind(fence).bind(insert.row.status == Status::Completed)
}

fn lift_statement(sql: &Sql, insert: &Insert, fence: i64, floor: i64) -> Statement {
    let statement = sqlx::query(sql).bind(floor).bind(insert.key.to_string());
    statement.bind(insert.row.owner.clone()).bind(fence)
}

fn replace_statement(sql: &Sql, replace: &Replace) -> Statement {
    let query = bind_row(sqlx::query(sql), NewRowParams::of(&replace.key, &replace.row));
    bind_rest(query.bind(replace.raise_fence), replace)
}

/// What a replacement binds behind the row and its fence.
fn bind_rest(query: Statement, replace: &Replace) -> Statement {
    let query = query.bind(replace.row.status == Status::Completed);
    bind_expected(query, &replace.key, &replace.expected)
}

fn finish_statement(sql: &Sql, finish: &Finish) -> Statement {
    let ending = FinishParams::of(finish);
    let completes = finish.ending.status() == Status::Completed;
    let holds = finish.ending.status() == Status::Processing;
    sqlx::query(sql)
        .bind(ending.status)
        .bind(completes)
        .bind(ending.result)
        .bind(ending.error)
        .bind(holds)
        .bind(holds)
        .bind(ending.expires_in)
        .bind(i64::from(finish.ending.raises_fence()))
        .bind(ending.withdrawn)
        .bind(completes)
        .bind(ending.key)
        .bind(ending.owner)
        .bind(ending.fence)
        .bind(completes)
}

fn audit_statement(sql: &Statements, key: &str, audit: &Audit) -> Statement {
    bind_audit(sqlx::query(&sql.audit).bind(key), audit)
}

impl fmt::Debug for MySqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStore")
            .field("table", &self.table)
            .field("connections", &self.connections)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl TransactDatabase for MySql {
    fn enlist<'a>(
        connection: &'a mut MySqlConnection,
        store: &'a dyn Store,
        savepoint: &'a mut Savepoint,
    ) -> Option<Box<dyn Transaction + 'a>> {
        let store = (store as &dyn Any).downcast_ref()?;
        Some(Box::new(MySqlTransaction { store, connection, savepoint }))
    }

    fn abandon(connection: &mut MySqlConnection, savepoint: &Savepoint) {
        transaction::abandon(connection, savepoint);
    }
}

impl Store for MySqlStore {
    fn name(&self) -> &'static str {
        "mysql"
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
