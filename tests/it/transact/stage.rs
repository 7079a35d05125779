use std::fmt::Display;

use idem_runtime::{Builder, Idem};
use sqlx::{Pool, Transaction};

use super::dialect::Dialect;
use crate::cases::site::{Site, Worker};

/// Where a case plays: a site, the application's own pool on its database, and a table for what jobs write, without
/// any constraint.
pub(crate) struct Stage<'s, DB: Dialect> {
    pub(crate) site: &'s Site,
    pub(crate) w: Worker,
    pub(crate) pool: Pool<DB>,
}

impl<'s, DB: Dialect> Stage<'s, DB> {
    pub(crate) async fn on(site: &'s Site) -> Self {
        Self::by(site, |builder| builder).await
    }

    pub(crate) async fn by(site: &'s Site, set: impl FnOnce(Builder) -> Builder) -> Self {
        let w = site.worker_by(set).await;
        let pool = DB::pool(site.database.url(), 4).await;
        let mut connection = pool.acquire().await.expect("a connection");
        DB::run(&mut connection, "CREATE TABLE effects (what varchar(100))").await.expect("a table");
        drop(connection);
        Self { site, w, pool }
    }

    /// A transaction that will write.
    pub(crate) async fn begin(&self) -> Transaction<'static, DB> {
        DB::begin(&self.pool).await
    }

    /// A connection of its own.
    pub(crate) async fn connection(&self) -> DB::Connection {
        DB::connect(self.site.database.url()).await
    }

    /// How many rows of this name are there for all to see.
    pub(crate) async fn rows(&self, what: impl Display) -> i64 {
        self.number(&format!("SELECT count(*) FROM effects WHERE what = '{what}'")).await
    }

    /// The one number that a query of a new connection gives.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        DB::number(&mut self.connection().await, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs SQL on a connection of its own.
    pub(crate) async fn execute(&self, sql: &str) {
        DB::run(&mut self.connection().await, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Puts a row in the way.
    pub(crate) async fn stands(&self, key: &str, columns: &str, values: &str) {
        let columns = format!("{}, {columns}", DB::KEY);
        self.execute(&format!("INSERT INTO idempotency_keys ({columns}) VALUES ('{key}', {values})")).await;
    }

    /// The state of a key; `None` where it has no row.
    pub(crate) async fn status(&self, key: &str) -> Option<String> {
        self.w.find(key).await.map(|row| row.status.to_string())
    }

    /// That a job's row and its key are there, both.
    pub(crate) async fn holds(&self, key: &str, what: &str) {
        let seen = (self.rows(what).await, self.status(key).await);
        assert_eq!(seen, (1, Some("completed".to_owned())), "both for {key}");
    }

    /// That neither a job's row nor its key is there.
    pub(crate) async fn lacks(&self, key: &str, what: &str) {
        assert_eq!((self.rows(what).await, self.status(key).await), (0, None), "neither for {key}");
    }

    /// A handle to another database of the same kind.
    pub(crate) async fn elsewhere(&self, url: &str) -> Idem {
        Idem::connect(url).await.expect("a database of one's own")
    }
}

/// Writes a row that a repeat would write once more.
pub(crate) async fn put<DB: Dialect>(
    connection: &mut DB::Connection,
    what: impl Display + Send,
) -> sqlx::Result<()> {
    DB::run(connection, &format!("INSERT INTO effects VALUES ('{what}')")).await.map(drop)
}

/// Plays a case on the stage of a site's own database.
macro_rules! plays {
    ($site:ident, $case:ident) => {
        match $site.backend() {
            idem_tests::Backend::Sqlite => {
                $case(&$crate::transact::stage::Stage::<sqlx::Sqlite>::on($site).await).await;
            }
            idem_tests::Backend::Postgres => {
                $case(&$crate::transact::stage::Stage::<sqlx::Postgres>::on($site).await).await;
            }
            idem_tests::Backend::Mysql => {
                $case(&$crate::transact::stage::Stage::<sqlx::MySql>::on($site).await).await;
            }
            idem_tests::Backend::Memory => panic!("no transaction is open in memory"),
        }
    };
}
pub(crate) use plays;
