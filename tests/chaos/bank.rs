//! The application's own side of the database: its pool, and the rows that its transactional jobs write.

use std::time::Duration;

use idem_runtime::TransactDatabase;
use idem_tests::Backend;
use sqlx::{
    AssertSqlSafe, Database, MySql, Pool, Postgres, Row, Sqlite, Transaction, pool::PoolOptions, raw_sql,
};

use crate::{delivery::Delivery, key::Key};

/// A database that jobs write in.
pub(crate) trait Dialect: TransactDatabase {
    /// Begins a transaction that will write.
    const BEGIN: &'static str;

    fn run(connection: &mut Self::Connection, sql: &str) -> impl Future<Output = sqlx::Result<()>> + Send;

    fn rows(pool: &Pool<Self>) -> impl Future<Output = sqlx::Result<Vec<(i64, i64)>>> + Send;
}

macro_rules! dialect {
    ($database:ty, $begin:literal) => {
        impl Dialect for $database {
            const BEGIN: &'static str = $begin;

            async fn run(connection: &mut Self::Connection, sql: &str) -> sqlx::Result<()> {
                raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop)
            }

            async fn rows(pool: &Pool<Self>) -> sqlx::Result<Vec<(i64, i64)>> {
                let rows = raw_sql("SELECT job, delivery FROM credits").fetch_all(pool).await?;
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
            }
        }
    };
}

dialect!(Sqlite, "BEGIN IMMEDIATE");
dialect!(Postgres, "BEGIN");
dialect!(MySql, "BEGIN");

/// The application's pool.
#[derive(Clone, Debug)]
pub(crate) enum Bank {
    Sqlite(Pool<Sqlite>),
    Postgres(Pool<Postgres>),
    Mysql(Pool<MySql>),
}

/// Does the same on each kind of pool.
macro_rules! on_pool {
    ($bank:expr, $pool:ident => $does:expr) => {
        match $bank {
            $crate::bank::Bank::Sqlite($pool) => $does,
            $crate::bank::Bank::Postgres($pool) => $does,
            $crate::bank::Bank::Mysql($pool) => $does,
        }
    };
}
pub(crate) use on_pool;

impl Bank {
    pub(crate) fn at(backend: Backend, url: &str) -> Bank {
        match backend {
            Backend::Postgres => Bank::Postgres(pool(url)),
            Backend::Mysql => Bank::Mysql(pool(url)),
            Backend::Sqlite => Bank::Sqlite(pool(url)),
            Backend::Memory => panic!("no transaction is open in memory"),
        }
    }

    /// Makes the table, without any constraint that would hide a fault.
    pub(crate) async fn prepare(&self) -> sqlx::Result<()> {
        on_pool!(self, pool => {
            let mut connection = pool.acquire().await?;
            run(&mut connection, "CREATE TABLE credits (job bigint, delivery bigint)").await
        })
    }

    /// The number of the job and of the delivery of each row.
    pub(crate) async fn rows(&self) -> sqlx::Result<Vec<(u64, u64)>> {
        let rows = on_pool!(self, pool => Dialect::rows(pool).await)?;
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(u64::MAX);
        Ok(rows.into_iter().map(|(job, delivery)| (unsigned(job), unsigned(delivery))).collect())
    }
}

async fn run<DB: Dialect>(connection: &mut sqlx::pool::PoolConnection<DB>, sql: &str) -> sqlx::Result<()> {
    DB::run(connection, sql).await
}

fn pool<DB: Database>(url: &str) -> Pool<DB> {
    let patience = Duration::from_secs(3);
    let pool = PoolOptions::new().max_connections(4).acquire_timeout(patience);
    pool.connect_lazy(url).expect("the URL of a database")
}

/// Writes the row of a delivery.
pub(crate) async fn credit<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    Key { number, .. }: Key,
    delivery: &Delivery,
) -> sqlx::Result<()> {
    DB::run(tx, &format!("INSERT INTO credits VALUES ({number}, {})", delivery.id)).await
}
