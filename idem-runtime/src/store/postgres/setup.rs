//! Whether the table is there and is ours; making it where it is not.

use sqlx::{PgConnection, Postgres, Row, SqlSafeStr, postgres::PgArguments, query::Query, raw_sql};

use super::{
    PostgresStore, statements,
    transaction::{begin, end},
};
use crate::store::{
    StoreError,
    sql::{Found, Shape, missing, permanent},
};

const SETTING_UP: &str = "setting up the table of idempotency keys";

/// The lock that keeps two processes from creating the table at once: `idem` in ASCII.
const LOCK: i64 = 0x6964_656d;

const COLUMNS_OF: &str = "
    SELECT attname::text, typname::text
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";

const KEY_IS_UNIQUE: &str = "
    SELECT EXISTS (
        SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        WHERE indrelid = to_regclass($1) AND attname = 'key' AND indisunique AND indimmediate AND indnkeyatts = 1
            AND indpred IS NULL
    )";

impl PostgresStore {
    pub(super) async fn set_up(&self, create: bool) -> Result<(), StoreError> {
        let mut held = self.connections.take(SETTING_UP).await?;
        self.pooler.look(held.connection(), &self.connections).await?;
        let done = self.check_or_create(held.connection(), create).await;
        held.settle(SETTING_UP, done).map_err(advise)?.map_err(|wrong| permanent(SETTING_UP, wrong))
    }

    async fn check_or_create(
        &self,
        connection: &mut PgConnection,
        create: bool,
    ) -> Result<Result<(), String>, sqlx::Error> {
        let mut transaction = begin(connection).await?;
        let complete = self.check(&mut transaction).await;
        if end(transaction, complete).await? == Ok(true) {
            return Ok(Ok(()));
        }
        // Another process may be half way through creating the table, and `IF NOT EXISTS` alone is not safe against
        // it: what is wrong is wrong under the lock.
        let mut transaction = begin(connection).await?;
        let complete = self.create_alone(&mut transaction, create).await;
        let complete = end(transaction, complete).await?;
        Ok(complete.and_then(|complete| if complete { Ok(()) } else { Err(missing(&self.table)) }))
    }

    /// Whether the table is there; an error of its own where it, or the server, is not as it has to be.
    async fn check(&self, connection: &mut PgConnection) -> Result<Result<bool, String>, sqlx::Error> {
        match fitness(connection).await? {
            Ok(()) => Ok(self.shape(connection).await?.is_complete(&self.table, statements::COLUMNS)),
            Err(unfit) => Ok(Err(unfit)),
        }
    }

    async fn create_alone(
        &self,
        connection: &mut PgConnection,
        create: bool,
    ) -> Result<Result<bool, String>, sqlx::Error> {
        once("SELECT set_config('lock_timeout', '10s', true), pg_advisory_xact_lock($1)")
            .bind(LOCK)
            .execute(&mut *connection)
            .await?;
        let complete = self.check(connection).await?;
        if complete == Ok(false) && create {
            raw_sql(&self.statements.ddl).execute(&mut *connection).await?;
            return self.check(connection).await;
        }
        Ok(complete)
    }

    async fn shape(&self, connection: &mut PgConnection) -> Result<Shape, sqlx::Error> {
        let unique = once(KEY_IS_UNIQUE).bind(self.table.quoted("")).fetch_one(&mut *connection).await?;
        let mut shape = Shape {
            columns: self.columns_of("", connection).await?,
            key_is_unique: unique.try_get(0)?,
            audited: !self.columns_of("_audit", connection).await?.is_empty(),
            version: None,
        };
        if !self.columns_of("_schema", connection).await?.is_empty() {
            let versions = once(&self.statements.version).fetch_all(connection).await?;
            shape.version = versions.first().map(|row| row.try_get(0)).transpose()?;
        }
        Ok(shape)
    }

    async fn columns_of(
        &self,
        suffix: &str,
        connection: &mut PgConnection,
    ) -> Result<Vec<Found>, sqlx::Error> {
        let rows = once(COLUMNS_OF).bind(self.table.quoted(suffix)).fetch_all(connection).await?;
        rows.iter().map(|row| Ok(Found { name: row.try_get(0)?, type_name: row.try_get(1)? })).collect()
    }
}

/// Whether the server and its database can do what is asked of them; if not, why.
async fn fitness(connection: &mut PgConnection) -> Result<Result<(), String>, sqlx::Error> {
    let sql = "SELECT current_setting('transaction_read_only') = 'on', current_setting('server_encoding')";
    let row = once(sql).fetch_one(connection).await?;
    let (read_only, encoding): (bool, String) = (row.try_get(0)?, row.try_get(1)?);
    if read_only {
        let text = "the server is read-only (a standby, or `default_transaction_read_only` is set), and claims are \
            written; name the primary";
        return Ok(Err(text.to_owned()));
    }
    if !["UTF8", "SQL_ASCII"].contains(&encoding.as_str()) {
        return Ok(Err(format!(
            "the database has the encoding {encoding}, which cannot hold every key and result; create one with \
             `ENCODING 'UTF8'`"
        )));
    }
    Ok(Ok(()))
}

/// A statement that is not kept prepared.
fn once(sql: impl SqlSafeStr) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(sql).persistent(false)
}

/// Says what to do where Postgres only says what is.
fn advise(error: StoreError) -> StoreError {
    let Some(sqlx::Error::Database(refusal)) = error.source.downcast_ref() else { return error };
    let advice = match refusal.code().as_deref() {
        Some("42501") => {
            "this role may not create or use the table; run the statements of `Idem::ddl()` as its owner and grant \
             SELECT, INSERT, UPDATE and DELETE on the three tables"
        }
        Some("3F000") => "there is no such schema; create it, or name another one",
        _ => return error,
    };
    permanent(SETTING_UP, format!("{advice} ({})", error.source))
}
