use std::env;

use idem_runtime::TransactDatabase;
use sqlx::{AnyConnection, Connection as _, MySql, Postgres, Sqlite};

/// Where keys are kept unless `IDEM_DATABASE_URL` says otherwise.
pub const DEFAULT_DATABASE: &str = "sqlite://idem.db";

/// The database that `IDEM_DATABASE_URL` names, or else the default one.
#[must_use]
pub fn database() -> String {
    env::var("IDEM_DATABASE_URL").unwrap_or_else(|_| DEFAULT_DATABASE.to_owned())
}

/// A database in whose transactions jobs run.
pub trait Begin: TransactDatabase {
    /// How a transaction begins that will write.
    const BEGIN: &'static str;
}

// SQLite has one writer at a time: who will write says so at the beginning.
impl Begin for Sqlite {
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
}

impl Begin for Postgres {
    const BEGIN: &'static str = "BEGIN";
}

impl Begin for MySql {
    const BEGIN: &'static str = "BEGIN";
}

/// A connection to that database, which has a table from then on for each name and its columns.
pub(crate) async fn connect(tables: &[(&str, &str)]) -> sqlx::Result<AnyConnection> {
    let url = database();
    let url = if url == "memory:" { "sqlite::memory:" } else { &url };
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await?;
    if connection.backend_name() == "SQLite" {
        sqlx::raw_sql("PRAGMA busy_timeout = 30000").execute(&mut connection).await?;
    }
    for (name, columns) in tables {
        let create = sqlx::AssertSqlSafe(format!("CREATE TABLE IF NOT EXISTS {name} ({columns})"));
        if let Err(error) = sqlx::raw_sql(create).execute(&mut connection).await {
            // On Postgres the statement fails where another process creates the table at the same moment.
            let look = sqlx::AssertSqlSafe(format!("SELECT 1 FROM {name} LIMIT 1"));
            sqlx::raw_sql(look).execute(&mut connection).await.map_err(|_| error)?;
        }
    }
    Ok(connection)
}
