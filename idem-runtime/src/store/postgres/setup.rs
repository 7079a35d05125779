//! Whether the table is there and is ours; making it where it is not.

use sqlx::{PgConnection, Postgres, Row, SqlSafeStr, postgres::PgArguments, query::Query, raw_sql};

use super::{
    PostgresStore, brief,
    statements::{self, Statements},
};
use crate::store::{
    StoreError,
    sql::{Found, Shape, Table, missing, permanent},
};

const SETTING_UP: &str = "setting up the table of idempotency keys";

/// The lock that keeps two processes from creating the table at once: `idem` in ASCII.
const LOCK: i64 = 0x6964_656d;

/// The schema in which a name is found first.
const SCHEMA_OF: &str = "
    SELECT nspname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_class.oid = to_regclass($1)";

const COLUMNS_OF: &str = "
    SELECT attname::text, typname::text, CASE WHEN typname = 'varchar' AND atttypmod > 4 THEN atttypmod - 4 END,
        attnotnull, atthasdef OR attidentity <> ''
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";

const KEY_IS_UNIQUE: &str = "
    SELECT EXISTS (
        SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
            JOIN pg_collation ON pg_collation.oid = indcollation[0]
        WHERE indrelid = to_regclass($1) AND attname = 'key' AND indisunique AND indimmediate AND indnkeyatts = 1
            AND indpred IS NULL AND collisdeterministic
    )";

/// What every job needs, a takeover and a review included; purging needs more.
const MISSING_RIGHTS: &str = "
    SELECT needed, of FROM (VALUES (1, 'SELECT', $1), (2, 'INSERT', $1), (3, 'UPDATE', $1), (4, 'SELECT', $2),
        (5, 'INSERT', $3))
        AS rights (rank, needed, of)
    WHERE NOT has_any_column_privilege(of, needed)
    ORDER BY rank";

impl PostgresStore {
    pub(super) async fn set_up(&self, create: bool) -> Result<(), StoreError> {
        let mut held = self.connections.take(SETTING_UP).await?;
        self.pooler.look(held.connection(), &self.connections).await?;
        let done = self.check_or_create(held.connection(), create).await;
        let done = held.settle(SETTING_UP, done).map_err(|error| self.advise(error))?;
        let table = done.map_err(|wrong| permanent(SETTING_UP, wrong))?;
        // Found where the search path led to now: from here on it is named, wherever a search path may lead.
        self.found.get_or_init(|| Statements::of(&table));
        Ok(())
    }

    async fn check_or_create(
        &self,
        connection: &mut PgConnection,
        create: bool,
    ) -> Result<Result<Table, String>, sqlx::Error> {
        let mut transaction = brief::begin(connection).await?;
        let checked = self.check(&mut transaction).await;
        if let Ok(Some(table)) = brief::end(transaction, checked).await? {
            return Ok(Ok(table));
        }
        // Another process may be half way through creating the table, and `IF NOT EXISTS` alone is not safe against
        // it: what is wrong is wrong under the lock.
        let mut transaction = brief::begin(connection).await?;
        let created = self.create_alone(&mut transaction, create).await;
        let created = brief::end(transaction, created).await?;
        let missing = || missing(&self.table, &statements::ddl(&self.table));
        Ok(created.and_then(|table| table.ok_or_else(missing)))
    }

    /// The table, where it is there and can be used; what is wrong, where that is more than that it is missing.
    async fn check(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Result<Option<Table>, String>, sqlx::Error> {
        if let Err(unfit) = fitness(connection).await? {
            return Ok(Err(unfit));
        }
        match self.complete(connection).await? {
            Ok(Some(table)) => Ok(usable(&table, connection).await?.map(Some)),
            other => Ok(other),
        }
    }

    async fn create_alone(
        &self,
        connection: &mut PgConnection,
        create: bool,
    ) -> Result<Result<Option<Table>, String>, sqlx::Error> {
        once("SELECT set_config('lock_timeout', '10s', true), pg_advisory_xact_lock($1)")
            .bind(LOCK)
            .execute(&mut *connection)
            .await?;
        let checked = self.check(connection).await?;
        if matches!(checked, Ok(None)) && create {
            raw_sql(&self.unfound.ddl).execute(&mut *connection).await?;
            return self.check(connection).await;
        }
        Ok(checked)
    }

    /// The table with its schema, where all of it is there.
    async fn complete(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Result<Option<Table>, String>, sqlx::Error> {
        let schema = once(SCHEMA_OF).bind(self.table.quoted("")).fetch_all(&mut *connection).await?;
        let schema: Option<String> = schema.first().map(|row| row.try_get(0)).transpose()?;
        let table = schema.map_or_else(|| self.table.clone(), |schema| self.table.within(&schema));
        let complete = shape(&table, connection).await?.is_complete(&table, statements::COLUMNS);
        Ok(complete.map(|complete| complete.then_some(table)))
    }

    /// Says what to do where Postgres only says what is.
    fn advise(&self, error: StoreError) -> StoreError {
        let Some(sqlx::Error::Database(refusal)) = error.source.downcast_ref() else { return error };
        let advice = match refusal.code().as_deref() {
            Some("42501") => format!(
                "this role may not create or use the table ({}); grant it SELECT, INSERT, UPDATE and DELETE on the three \
                 tables, and where they are missing run these statements as their owner\n{}",
                error.source,
                statements::ddl(&self.table)
            ),
            Some("3F000") => {
                format!("there is no such schema; create it, or name another one ({})", error.source)
            }
            _ => return error,
        };
        permanent(SETTING_UP, advice)
    }
}

async fn shape(table: &Table, connection: &mut PgConnection) -> Result<Shape, sqlx::Error> {
    let unique = once(KEY_IS_UNIQUE).bind(table.quoted("")).fetch_one(&mut *connection).await?;
    let mut shape = Shape {
        columns: columns_of(&table.quoted(""), connection).await?,
        key_is_unique: unique.try_get(0)?,
        audit: columns_of(&table.quoted("_audit"), connection).await?,
        schema: columns_of(&table.quoted("_schema"), connection).await?,
        version: None,
    };
    if shape.tells_version() {
        let versions = once(&Statements::of(table).version).fetch_all(connection).await?;
        shape.version = versions.first().map(|row| row.try_get(0)).transpose()?;
    }
    Ok(shape)
}

async fn columns_of(name: &str, connection: &mut PgConnection) -> Result<Vec<Found>, sqlx::Error> {
    let rows = once(COLUMNS_OF).bind(name).fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            let room: Option<i32> = row.try_get(2)?;
            Ok(Found {
                name: row.try_get(0)?,
                type_name: row.try_get(1)?,
                room: room.map(i32::unsigned_abs),
                not_null: row.try_get(3)?,
                has_default: row.try_get(4)?,
            })
        })
        .collect()
}

/// The table, where this role may do what every job does.
async fn usable(table: &Table, connection: &mut PgConnection) -> Result<Result<Table, String>, sqlx::Error> {
    let rights = once(MISSING_RIGHTS).bind(table.quoted("")).bind(table.quoted("_schema"));
    let rights = rights.bind(table.quoted("_audit"));
    let missing = rights.fetch_all(connection).await?;
    let Some(first) = missing.first() else { return Ok(Ok(table.clone())) };
    let (right, of): (String, String) = (first.try_get(0)?, first.try_get(1)?);
    Ok(Err(format!(
        "this role lacks the right to {right} on {of}; grant SELECT, INSERT, UPDATE and DELETE on the three tables"
    )))
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
