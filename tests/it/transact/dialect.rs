//! What databases say differently, for cases that are written once.

use std::time::Duration;

use idem_runtime::TransactDatabase;
use idem_tests::Backend;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, PgConnection, Pool, Postgres, Row,
    Sqlite, SqliteConnection, Transaction, pool::PoolOptions, raw_sql, sqlite::SqliteConnectOptions,
};

/// A database that cases play on.
pub(crate) trait Dialect: TransactDatabase {
    const BACKEND: Backend;

    /// Begins a transaction that will write.
    const BEGIN: &'static str;

    /// What the column of the keys is called in a statement.
    const KEY: &'static str;

    /// Counts the transactions of this database that wait for a lock, where somebody can tell.
    const WAITING: Option<&'static str>;

    /// Asks a connection for its number, and ends the one with a number: where there is a server.
    const NUMBER: &'static str;
    const END: &'static str;

    /// A connection that waits for others when it has to.
    fn connect(url: &str) -> impl Future<Output = Self::Connection> + Send;

    /// At most so many connections, for which a caller waits three seconds.
    fn pool(url: &str, connections: u32) -> impl Future<Output = Pool<Self>> + Send;

    /// A transaction that will write, on a connection of the pool.
    fn begin(pool: &Pool<Self>) -> impl Future<Output = Transaction<'static, Self>> + Send;

    /// The same on a connection.
    fn begin_on(connection: &mut Self::Connection) -> impl Future<Output = Transaction<'_, Self>> + Send;

    /// Runs SQL; how many rows it changed.
    fn run(connection: &mut Self::Connection, sql: &str) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// The one text that a query gives.
    fn text(
        connection: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<String>> + Send;

    /// The one number that a query gives.
    fn number(connection: &mut Self::Connection, sql: &str)
    -> impl Future<Output = sqlx::Result<i64>> + Send;
}

macro_rules! dialect {
    ($database:ty: $backend:ident, $begin:literal, $key:literal, $waiting:expr, $number:literal, $end:literal, $connect:path) => {
        impl Dialect for $database {
            const BACKEND: Backend = Backend::$backend;
            const BEGIN: &'static str = $begin;
            const KEY: &'static str = $key;
            const WAITING: Option<&'static str> = $waiting;
            const NUMBER: &'static str = $number;
            const END: &'static str = $end;

            async fn connect(url: &str) -> Self::Connection {
                $connect(url).await.expect("a connection")
            }

            async fn pool(url: &str, connections: u32) -> Pool<Self> {
                let pool =
                    PoolOptions::new().max_connections(connections).min_connections(connections.min(1));
                pool.acquire_timeout(Duration::from_secs(3)).connect(url).await.expect("a pool")
            }

            async fn begin(pool: &Pool<Self>) -> Transaction<'static, Self> {
                pool.begin_with(Self::BEGIN).await.expect("a transaction")
            }

            async fn begin_on(connection: &mut Self::Connection) -> Transaction<'_, Self> {
                connection.begin_with(Self::BEGIN).await.expect("a transaction")
            }

            async fn run(connection: &mut Self::Connection, sql: &str) -> sqlx::Result<u64> {
                let done = raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await?;
                Ok(done.rows_affected())
            }

            async fn text(connection: &mut Self::Connection, sql: &str) -> sqlx::Result<String> {
                raw_sql(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await?.try_get(0)
            }

            async fn number(connection: &mut Self::Connection, sql: &str) -> sqlx::Result<i64> {
                sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await?.try_get(0)
            }
        }
    };
}

dialect!(Sqlite: Sqlite, "BEGIN IMMEDIATE", "key", None, "SELECT 0", "SELECT", connect_to_sqlite);
dialect!(
    Postgres: Postgres,
    "BEGIN",
    "key",
    Some(WAITING_ON_POSTGRES),
    "SELECT pg_backend_pid()::bigint",
    "SELECT pg_terminate_backend({}, 10000)",
    PgConnection::connect
);
dialect!(
    MySql: Mysql,
    "BEGIN",
    "`key`",
    Some(WAITING_ON_MYSQL),
    "SELECT CAST(connection_id() AS SIGNED)",
    "KILL {}",
    MySqlConnection::connect
);

const WAITING_ON_POSTGRES: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
// What InnoDB itself tells of waits is old as long as somebody asks for it often.
const WAITING_ON_MYSQL: &str = "SELECT count(*) FROM information_schema.processlist
    WHERE db = database() AND id <> connection_id() AND command <> 'Sleep'";

async fn connect_to_sqlite(url: &str) -> sqlx::Result<SqliteConnection> {
    let options: SqliteConnectOptions = url.parse()?;
    options.busy_timeout(Duration::from_secs(20)).connect().await
}
