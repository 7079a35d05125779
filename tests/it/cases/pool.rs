use std::time::Duration;

use idem_tests::Backend;
use sqlx::{
    AssertSqlSafe, MySqlPool, PgPool, Row, SqlitePool,
    mysql::MySqlPoolOptions,
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use super::site::Site;

/// The application's own pool, on the same database.
#[derive(Clone, Debug)]
pub(crate) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
    Mysql(MySqlPool),
}

impl Pool {
    /// One of at most `connections` connections, for which a caller waits 3 seconds.
    pub(crate) async fn of(site: &Site, connections: u32) -> Self {
        let patience = Duration::from_secs(3);
        match site.backend() {
            Backend::Memory => panic!("memory has no connections"),
            Backend::Sqlite => {
                let options: SqliteConnectOptions = site.database.url().parse().expect("a SQLite URL");
                let options = options.create_if_missing(true);
                let pool = SqlitePoolOptions::new().max_connections(connections).acquire_timeout(patience);
                Self::Sqlite(pool.connect_with(options).await.expect("a pool"))
            }
            Backend::Postgres => {
                let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(patience);
                Self::Postgres(pool.connect(site.database.direct_url()).await.expect("a pool"))
            }
            Backend::Mysql => {
                let pool = MySqlPoolOptions::new().max_connections(connections).acquire_timeout(patience);
                Self::Mysql(pool.connect(site.database.url()).await.expect("a pool"))
            }
        }
    }

    /// The one number that a query gives.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.try_number(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub(crate) async fn try_number(&self, sql: &str) -> sqlx::Result<i64> {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(pool) => statement.fetch_one(pool).await.map(|row| row.get(0)),
            Self::Postgres(pool) => {
                statement.fetch_one(pool).await.map(|row| i64::from(row.get::<i32, _>(0)))
            }
            Self::Mysql(pool) => statement.fetch_one(pool).await.map(|row| row.get(0)),
        }
    }

    /// Does something with a connection in hand.
    pub(crate) async fn with_connection<T>(&self, deed: impl AsyncFnOnce() -> T) -> T {
        match self {
            Self::Sqlite(pool) => {
                let _held = pool.acquire().await.expect("a connection");
                deed().await
            }
            Self::Postgres(pool) => {
                let _held = pool.acquire().await.expect("a connection");
                deed().await
            }
            Self::Mysql(pool) => {
                let _held = pool.acquire().await.expect("a connection");
                deed().await
            }
        }
    }

    /// How many connections are open and how many of them idle.
    pub(crate) fn connections(&self) -> (u32, usize) {
        match self {
            Self::Sqlite(pool) => (pool.size(), pool.num_idle()),
            Self::Postgres(pool) => (pool.size(), pool.num_idle()),
            Self::Mysql(pool) => (pool.size(), pool.num_idle()),
        }
    }
}
