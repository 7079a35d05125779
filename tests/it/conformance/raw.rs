use std::{sync::Arc, time::Duration};

use idem_runtime::{
    record::Status,
    store::{Answer, Insert, Moment, Replace, Store, memory::MemoryStore},
};
use idem_tests::{Backend, Database, mysql_in_standard_words, table::foreign_claim};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, Row, SqliteConnection,
    sqlite::SqliteConnectOptions,
};
use tokio::sync::Mutex;

use super::rows;

/// A hand in the rows that is not the store's: a foreign worker, an operator, a clock that went wrong. Databases are
/// reached by SQL on a connection of its own; memory, which nobody else can reach, by the store itself.
pub(super) enum Raw {
    Memory(Arc<MemoryStore>),
    Sqlite(Mutex<SqliteConnection>),
    Postgres(Mutex<PgConnection>),
    Mysql(Mutex<MySqlConnection>),
}

/// A column with the value it gets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column<'a> {
    Status(&'a str),
    Owner(Option<&'a str>),
    OnStale(Option<&'a str>),
    LeaseUntil(Option<i64>),
    ExpiresAt(Option<i64>),
}

impl Raw {
    pub(super) async fn connect(database: &Database) -> Self {
        match database.backend() {
            Backend::Sqlite => {
                let options: SqliteConnectOptions = database.url().parse().expect("a SQLite URL");
                let options = options.create_if_missing(true).busy_timeout(Duration::from_secs(10));
                Self::Sqlite(Mutex::new(options.connect().await.expect("a connection")))
            }
            Backend::Postgres => {
                let connection = PgConnection::connect(database.direct_url()).await.expect("a connection");
                Self::Postgres(Mutex::new(connection))
            }
            Backend::Mysql => {
                let connection = mysql_in_standard_words(database.url()).await.expect("a connection");
                Self::Mysql(Mutex::new(connection))
            }
            Backend::Memory => unreachable!("memory is reached by the store"),
        }
    }

    /// Writes one column of a row, whatever the store thinks of it.
    pub(super) async fn set(&self, key: &str, column: Column<'_>) {
        let Self::Memory(store) = self else {
            let (name, value) = match column {
                Column::Status(word) => ("status", quoted(word)),
                Column::Owner(owner) => ("owner", nullable(owner.map(quoted))),
                Column::OnStale(word) => ("on_stale", nullable(word.map(quoted))),
                Column::LeaseUntil(at) => ("lease_until", nullable(at)),
                Column::ExpiresAt(at) => ("expires_at", nullable(at)),
            };
            let changed = self
                .execute(format!(
                    "UPDATE idempotency_keys SET {name} = {value} WHERE \"key\" = {}",
                    quoted(key)
                ))
                .await;
            assert_eq!(changed, 1, "no row for {key}");
            return;
        };
        let record = store.read(&[key.into()]).await.expect("a reply").remove(0).expect("a row");
        let mut row = rows::again(&record);
        let text = |value: Option<&str>| value.map(ToOwned::to_owned);
        match column {
            Column::Status(word) => row.status = Status::from(word),
            Column::Owner(owner) => row.owner = text(owner),
            Column::OnStale(word) => row.on_stale = text(word),
            Column::LeaseUntil(at) => row.lease = Moment::from(at),
            Column::ExpiresAt(at) => row.expires = Moment::from(at),
        }
        let replacement = Replace {
            key: key.into(),
            expected: record.version(),
            row,
            raise_fence: false,
            renew_birth: false,
            audit: None,
        };
        let answer = store.replace(&replacement).await.expect("a reply");
        assert!(matches!(answer, Answer::Written { .. }), "{answer:?}");
    }

    /// Moves the end of a lease into the past.
    pub(super) async fn end_lease(&self, key: &str) {
        self.set(key, Column::LeaseUntil(Some(rows::PAST))).await;
    }

    /// What a worker that knows nothing of us does first: a row with nothing but its key.
    pub(super) async fn begin_by_hand(&self, key: &str) {
        if let Self::Memory(store) = self {
            let row = foreign_claim();
            store.insert(&[Insert { key: key.into(), row }]).await.expect("a reply");
        } else {
            self.execute(format!("INSERT INTO idempotency_keys (\"key\") VALUES ({})", quoted(key))).await;
        }
    }

    /// What such a worker does last.
    pub(super) async fn complete_by_hand(&self, key: &str) {
        if let Self::Memory(_) = self {
            self.set(key, Column::Status("completed")).await;
        } else {
            self.execute(format!(
                "UPDATE idempotency_keys SET status = 'completed', completed_at = {} WHERE \"key\" = {}",
                self.now(),
                quoted(key)
            ))
            .await;
        }
    }

    /// The present in SQL, as exact as the columns of moments.
    pub(super) fn now(&self) -> &'static str {
        if matches!(self, Self::Mysql(_)) { "CURRENT_TIMESTAMP(6)" } else { "CURRENT_TIMESTAMP" }
    }

    /// Lets a row be so much older. In memory the clock moves on instead.
    pub(super) async fn age(&self, key: &str, by: Duration) {
        let older = match self {
            Self::Memory(store) => return store.advance(by),
            Self::Sqlite(_) => format!("datetime(created_at, '-{} seconds')", by.as_secs()),
            Self::Postgres(_) => format!("created_at - interval '{} seconds'", by.as_secs()),
            Self::Mysql(_) => format!("created_at - INTERVAL {} SECOND", by.as_secs()),
        };
        self.execute(format!(
            "UPDATE idempotency_keys SET created_at = {older} WHERE \"key\" = {}",
            quoted(key)
        ))
        .await;
    }

    /// The database's time, in microseconds.
    pub(super) async fn clock(&self) -> i64 {
        match self {
            Self::Memory(store) => {
                self.begin_by_hand("the clock").await;
                let probe = store.read(&["the clock".into()]).await.expect("a reply").remove(0);
                probe.expect("a row").now
            }
            Self::Sqlite(_) => {
                self.number("SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000")
                    .await
            }
            Self::Postgres(_) => {
                self.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").await
            }
            Self::Mysql(_) => self.number("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").await,
        }
    }

    /// The audit lines of a key, oldest first: actor, states before and after, note, the old result.
    pub(super) async fn audit(&self, key: &str) -> Vec<[String; 5]> {
        if let Self::Memory(store) = self {
            let lines = store.audited().into_iter().filter(|(of, _)| **of == *key);
            return lines
                .map(|(_, line)| {
                    let line = line.audit;
                    [
                        line.actor,
                        line.from_status,
                        line.to_status,
                        line.note,
                        line.old_result.unwrap_or_default(),
                    ]
                })
                .collect();
        }
        let joined = self
            .text(&format!(
                "SELECT coalesce({}(actor || '|' || from_status || '|' || to_status || '|' || note || '|' ||
                 coalesce(old_result, ''){}';'), '')
                 FROM (SELECT * FROM idempotency_keys_audit WHERE \"key\" = {} ORDER BY id) AS audited",
                if matches!(self, Self::Postgres(_)) { "string_agg" } else { "group_concat" },
                if matches!(self, Self::Mysql(_)) { " SEPARATOR " } else { ", " },
                quoted(key)
            ))
            .await;
        let line = |line: &str| -> [String; 5] {
            let columns: Vec<_> = line.split('|').map(ToOwned::to_owned).collect();
            columns.try_into().expect("five columns")
        };
        joined.split(';').filter(|text| !text.is_empty()).map(line).collect()
    }

    /// Something that a write to the row or a lock on it changes, and a read does not.
    pub(super) async fn trace(&self, key: &str) -> String {
        match self {
            Self::Memory(store) => {
                let record = store.read(&[key.into()]).await.expect("a reply").remove(0);
                format!("{:?}", record.map(rows::at_rest))
            }
            Self::Sqlite(_) => self.number("PRAGMA data_version").await.to_string(),
            Self::Mysql(_) => {
                // No column tells of a write: triggers do, also of one that is tried. That no lock is taken is a case of
                // its own.
                self.execute(
                    "CREATE TABLE IF NOT EXISTS touched (n int);
                     CREATE TRIGGER IF NOT EXISTS inserted BEFORE INSERT ON idempotency_keys
                        FOR EACH ROW INSERT INTO touched VALUES (1);
                     CREATE TRIGGER IF NOT EXISTS updated BEFORE UPDATE ON idempotency_keys
                        FOR EACH ROW INSERT INTO touched VALUES (1)",
                )
                .await;
                self.number("SELECT count(*) FROM touched").await.to_string()
            }
            Self::Postgres(_) => {
                let row = format!(
                    "SELECT xmin::text || ' ' || xmax::text || ' ' || ctid::text FROM idempotency_keys WHERE \"key\" = {}",
                    quoted(key)
                );
                self.text(&row).await
            }
        }
    }

    /// Runs SQL; how many rows it changed.
    pub(super) async fn execute(&self, sql: impl Into<String>) -> u64 {
        let sql = sql.into();
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.clone()));
        let changed = match self {
            Self::Memory(_) => panic!("memory knows no SQL"),
            Self::Sqlite(connection) => {
                statement.execute(&mut *connection.lock().await).await.map(|done| done.rows_affected())
            }
            Self::Postgres(connection) => {
                statement.execute(&mut *connection.lock().await).await.map(|done| done.rows_affected())
            }
            Self::Mysql(connection) => {
                statement.execute(&mut *connection.lock().await).await.map(|done| done.rows_affected())
            }
        };
        changed.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The one number that a query gives.
    pub(super) async fn number(&self, sql: &str) -> i64 {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Memory(_) => panic!("memory knows no SQL"),
            Self::Sqlite(connection) => {
                statement.fetch_one(&mut *connection.lock().await).await.map(|row| row.get(0))
            }
            Self::Postgres(connection) => {
                statement.fetch_one(&mut *connection.lock().await).await.map(|row| row.get(0))
            }
            Self::Mysql(connection) => {
                statement.fetch_one(&mut *connection.lock().await).await.map(|row| row.get(0))
            }
        }
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The one text that a query gives.
    pub(super) async fn text(&self, sql: &str) -> String {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Memory(_) => panic!("memory knows no SQL"),
            Self::Sqlite(connection) => {
                statement.fetch_one(&mut *connection.lock().await).await.map(|row| row.get(0))
            }
            Self::Postgres(connection) => {
                statement.fetch_one(&mut *connection.lock().await).await.map(|row| row.get(0))
            }
            Self::Mysql(connection) => {
                statement.fetch_one(&mut *connection.lock().await).await.map(|row| row.get(0))
            }
        }
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

/// A text as SQL writes it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn nullable(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}
