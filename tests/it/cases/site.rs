//! Where a case plays: a database of its own, the workers that share it, and a hand in its rows that is not theirs.

use std::{
    env,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use idem_runtime::{Builder, Idem, Record, record::Status};
use idem_tests::{Backend, Database, Ledger, Proxy, child, mysql_in_standard_words};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, Row, SqliteConnection,
    sqlite::SqliteConnectOptions,
};
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

/// How long a case may take, on a machine that is busy with others.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where a child finds its database.
pub(crate) const URL: &str = "IDEM_CASE_URL";

const LEDGER: &str = "IDEM_CASE_LEDGER";

/// A database with its workers.
pub(crate) struct Site {
    pub(crate) database: Database,
    pub(crate) ledger: Arc<Ledger>,
    /// Nobody else can reach the rows in memory, so all workers of such a site are this one.
    memory: OnceCell<Worker>,
}

/// A process that runs jobs, as far as the database can tell: an `Idem` with connections of its own.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) idem: Idem,
    ledger: Arc<Ledger>,
}

impl Site {
    /// Plays a case on a back end. One that is missing here is said aloud; the test runner counts it as not covered.
    pub(crate) async fn plays(backend: Backend, case: impl AsyncFnOnce(&Site)) {
        Self::plays_at(backend.database(), case).await;
    }

    /// Plays a case at a database, if it is there.
    pub(crate) async fn plays_at(database: Option<Database>, case: impl AsyncFnOnce(&Site)) {
        if let Some(database) = database {
            timeout(PATIENCE, case(&Self::at(database))).await.expect("a case that ends");
        }
    }

    pub(crate) fn on(backend: Backend) -> Self {
        Self::at(backend.fresh())
    }

    pub(crate) fn at(database: Database) -> Self {
        Self { database, ledger: Arc::new(Ledger::new()), memory: OnceCell::new() }
    }

    pub(crate) fn backend(&self) -> Backend {
        self.database.backend()
    }

    /// One more worker.
    pub(crate) async fn worker(&self) -> Worker {
        if self.backend() == Backend::Memory {
            return self.memory.get_or_init(|| self.worker_by(|builder| builder)).await.clone();
        }
        self.worker_by(|builder| builder).await
    }

    /// One more worker, with settings of its own.
    pub(crate) async fn worker_by(&self, set: impl FnOnce(Builder) -> Builder) -> Worker {
        let builder = set(Idem::builder().url(self.database.url()));
        self.worker_of(builder.connect().await.expect("a database of one's own"))
    }

    /// A worker with this handle.
    pub(crate) fn worker_of(&self, idem: Idem) -> Worker {
        Worker { idem, ledger: Arc::clone(&self.ledger) }
    }

    /// The command of a child process that works here: see [`Worker::of_parent`].
    pub(crate) fn child(&self, path: &str) -> Command {
        let mut command = child::test(path);
        command.env(URL, self.database.url()).env(LEDGER, self.ledger.path());
        command
    }

    /// How often the effect of this name happened.
    pub(crate) fn effects(&self, name: &str) -> usize {
        self.ledger.count(name)
    }

    /// Lets a lease be over: moves its end into the past, or, in memory, waits for it. The holder must not send
    /// heartbeats.
    pub(crate) async fn end_lease(&self, worker: &Worker, key: &str) {
        if self.backend() == Backend::Memory {
            let row = worker.row(key).await;
            let left = u64::try_from(row.lease_until.expect("a lease") - row.now).unwrap_or(0);
            sleep(Duration::from_micros(left)).await;
        } else {
            self.set(key, "lease_until = 1").await;
        }
    }

    /// Writes columns of a row, whatever its holder thinks of it.
    pub(crate) async fn set(&self, key: &str, columns: &str) {
        let key = key.replace('\'', "''");
        let changed =
            self.execute(&format!("UPDATE idempotency_keys SET {columns} WHERE \"key\" = '{key}'")).await;
        assert_eq!(changed, 1, "one row of {key}");
    }

    /// Lets there be no table yet, once more. A database of one's own for each round would take its time to make.
    pub(crate) async fn clear(&self) {
        for table in ["idempotency_keys", "idempotency_keys_audit", "idempotency_keys_schema"] {
            self.execute(&format!("DROP TABLE IF EXISTS {table}")).await;
        }
    }

    /// Runs SQL on a connection of its own; how many rows it changed.
    pub(crate) async fn execute(&self, sql: &str) -> u64 {
        self.connection().await.execute(sql).await
    }

    /// The one number that a query gives.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.connection().await.number(sql).await
    }

    /// How many connections to the database there are, on a server, besides the one that asks.
    pub(crate) async fn connections(&self) -> i64 {
        let others = match self.backend() {
            Backend::Mysql => {
                "SELECT count(*) FROM information_schema.processlist
                 WHERE db = database() AND id <> connection_id()"
            }
            _ => {
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()"
            }
        };
        self.number(others).await
    }

    /// How many of them are in a transaction and do nothing.
    pub(crate) async fn idle_transactions(&self) -> i64 {
        let idle = match self.backend() {
            Backend::Mysql => {
                "SELECT count(*) FROM information_schema.innodb_trx
                     JOIN information_schema.processlist ON id = trx_mysql_thread_id
                 WHERE db = database() AND command = 'Sleep'"
            }
            _ => {
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
            }
        };
        self.number(idle).await
    }

    /// Lets no reply to a claim pass. On MySQL a look goes ahead of it.
    pub(crate) fn swallow_claims(&self, proxy: &Proxy) {
        proxy.swallow_replies_but(usize::from(self.backend() == Backend::Mysql));
    }

    /// The database's time in microseconds, as SQL.
    pub(crate) fn now(&self) -> &'static str {
        match self.backend() {
            Backend::Memory => panic!("memory knows no SQL"),
            Backend::Sqlite => "(CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000)",
            Backend::Mysql => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
            Backend::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
        }
    }

    pub(crate) async fn connection(&self) -> Connected {
        match self.backend() {
            Backend::Memory => panic!("memory knows no SQL"),
            Backend::Sqlite => {
                let options: SqliteConnectOptions = self.database.url().parse().expect("a SQLite URL");
                let options = options.create_if_missing(true).busy_timeout(Duration::from_secs(10));
                Connected::Sqlite(options.connect().await.expect("a connection"))
            }
            Backend::Postgres => {
                let url = self.database.direct_url();
                Connected::Postgres(PgConnection::connect(url).await.expect("a connection"))
            }
            Backend::Mysql => {
                let connection = mysql_in_standard_words(self.database.url()).await;
                Connected::Mysql(connection.expect("a connection"))
            }
        }
    }
}

/// A connection that is not ours.
pub(crate) enum Connected {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

impl Connected {
    /// Runs SQL; how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: &str) -> u64 {
        self.try_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub(crate) async fn try_execute(&mut self, sql: &str) -> sqlx::Result<u64> {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(connection) => statement.execute(connection).await.map(|done| done.rows_affected()),
            Self::Postgres(connection) => {
                statement.execute(connection).await.map(|done| done.rows_affected())
            }
            Self::Mysql(connection) => statement.execute(connection).await.map(|done| done.rows_affected()),
        }
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(connection) => statement.fetch_one(connection).await.map(|row| row.get(0)),
            Self::Postgres(connection) => statement.fetch_one(connection).await.map(|row| row.get(0)),
            Self::Mysql(connection) => statement.fetch_one(connection).await.map(|row| row.get(0)),
        }
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

impl Worker {
    /// The worker of a child process, at its parent's site.
    pub(crate) async fn of_parent() -> Self {
        Self::of_parent_by(|builder, _| builder).await
    }

    /// The same, with settings of its own.
    pub(crate) async fn of_parent_by(set: impl FnOnce(Builder, &Ledger) -> Builder) -> Self {
        let url = env::var(URL).expect("set by the parent");
        let ledger = env::var(LEDGER).expect("set by the parent");
        let ledger = Ledger::open(Path::new(&ledger));
        let idem = set(Idem::builder().url(url), &ledger).connect().await;
        Self { idem: idem.expect("the parent's database"), ledger: Arc::new(ledger) }
    }

    /// The outside effect of a body.
    pub(crate) fn effect(&self, name: &str) {
        self.ledger.record(name);
    }

    /// How often the effect of this name happened.
    pub(crate) fn effects(&self, name: &str) -> usize {
        self.ledger.count(name)
    }

    /// The row of a key, which must be there.
    pub(crate) async fn row(&self, key: &str) -> Record {
        self.find(key).await.unwrap_or_else(|| panic!("no row for {key}"))
    }

    pub(crate) async fn find(&self, key: &str) -> Option<Record> {
        self.idem.lookup(key).await.expect("a look at the row")
    }

    /// Looks at a row until it is in a state that somebody else brings about.
    pub(crate) async fn row_that_is(&self, key: &str, status: &Status) -> Record {
        self.row_such_that(key, &format!("{status}"), |row| row.status == *status).await
    }

    pub(crate) async fn row_such_that(
        &self,
        key: &str,
        wanted: &str,
        is: impl Fn(&Record) -> bool,
    ) -> Record {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            match self.find(key).await {
                Some(row) if is(&row) => return row,
                row => assert!(Instant::now() < patience, "{key} does not become {wanted}: {row:?}"),
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A row as it rests: without the moment of looking.
pub(crate) fn at_rest(row: Record) -> Record {
    let mut row = row;
    row.now = 0;
    row
}
