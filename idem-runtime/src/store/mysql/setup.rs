//! Whether the table is there and is ours; making it where it is not.

use sqlx::{MySql, MySqlConnection, Row, mysql::MySqlDatabaseError, query, raw_sql};

use super::{
    MySqlStore,
    retry::{Retry, fault},
    server::Server,
    statements,
};
use crate::store::{
    StoreError,
    sql::{Found, Shape, missing, permanent},
};

const SETTING_UP: &str = "setting up the table of idempotency keys";

/// A type is named with what would make it unfit: a sign that is missing, another character set, a moment that every
/// write moves. A key is named with its length, and with its collation where it has one.
const COLUMNS_OF: &str = "
    SELECT CONVERT(column_name USING utf8mb4), CONVERT(CONCAT(
        IF(column_name = 'key', column_type, data_type),
        IF(column_type LIKE '%unsigned%', ' unsigned', ''),
        CASE
            WHEN character_set_name IS NULL THEN ''
            WHEN column_name = 'key' THEN CONCAT(' COLLATE ', collation_name)
            WHEN character_set_name = 'utf8mb4' THEN ''
            ELSE CONCAT(' CHARACTER SET ', character_set_name)
        END,
        IF(extra LIKE '%on update%', ' ON UPDATE CURRENT_TIMESTAMP', '')) USING utf8mb4),
        CAST(LEAST(character_maximum_length, 2147483647) AS SIGNED), CAST(is_nullable = 'NO' AS SIGNED),
        CAST(column_default IS NOT NULL OR extra LIKE '%auto_increment%' AS SIGNED)
    FROM information_schema.columns
    WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?";

const ENGINE_OF: &str = "
    SELECT CONVERT(COALESCE(engine, table_type) USING utf8mb4) FROM information_schema.tables
    WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?";

const PRIMARY_KEY: &str = "
    SELECT CONVERT(COALESCE(GROUP_CONCAT(column_name, COALESCE(sub_part, '')), '') USING utf8mb4)
    FROM information_schema.statistics
    WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND index_name = 'PRIMARY'";

const READ_ONLY: &str = "SELECT CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF')";

impl MySqlStore {
    pub(super) async fn set_up(&self, create: bool) -> Result<(), StoreError> {
        let mut retry = Retry::default();
        loop {
            let (mut held, _) = self.take(SETTING_UP).await.map_err(|error| self.advise(error))?;
            let done = self.check_or_create(held.connection(), create).await;
            let fault = fault(&done);
            let done = held.settle(SETTING_UP, done);
            // Several that create at once may collide.
            if !retry.after(fault).await {
                return done
                    .map_err(|error| self.advise(error))?
                    .map_err(|wrong| permanent(SETTING_UP, wrong));
            }
        }
    }

    /// Each statement that creates is safe against its like, so what another process has half done is done here.
    async fn check_or_create(
        &self,
        connection: &mut MySqlConnection,
        create: bool,
    ) -> Result<Result<(), String>, sqlx::Error> {
        if let Err(old) = Server::check(&Server::version(connection).await?) {
            return Ok(Err(old));
        }
        if number(connection, READ_ONLY).await? != 0 {
            let text = "the server is read-only (`@@read_only`: it is a replica, or was switched), and claims are \
                written; name the primary";
            return Ok(Err(text.to_owned()));
        }
        let mut complete = self.is_complete(connection).await?;
        if complete == Ok(false) && create {
            raw_sql(&self.plain.ddl).execute(&mut *connection).await?;
            complete = self.is_complete(connection).await?;
        }
        Ok(complete.and_then(|complete| if complete { Ok(()) } else { Err(self.missing()) }))
    }

    fn missing(&self) -> String {
        missing(&self.table, &statements::ddl(&self.table))
    }

    async fn is_complete(
        &self,
        connection: &mut MySqlConnection,
    ) -> Result<Result<bool, String>, sqlx::Error> {
        let Some(engine) = self.text(ENGINE_OF, connection).await? else {
            return Ok(self.shape(connection).await?.is_complete(&self.table, statements::COLUMNS));
        };
        let name = self.table.quoted("");
        if engine != "InnoDB" {
            return Ok(Err(format!(
                "the table {name} is kept by `{engine}`, which locks no rows and may lose what it acknowledged; run\n\
                 ALTER TABLE {name} ENGINE = InnoDB;"
            )));
        }
        let shape = self.shape(connection).await?;
        let key = shape.columns.iter().find(|column| column.name == "key");
        if let Some(key) = key.filter(|key| !is_bytes(&key.type_name)) {
            return Ok(Err(format!(
                "column `key` of {name} has type `{}`, which takes different keys for one (by case, accents, trailing \
                 blanks or length) where bytes must count; run\n\
                 ALTER TABLE {name} MODIFY `key` varbinary(255) NOT NULL;",
                key.type_name
            )));
        }
        let complete = shape.is_complete(&self.table, statements::COLUMNS);
        if complete.is_ok() && self.text(PRIMARY_KEY, connection).await?.as_deref() != Some("key") {
            return Ok(Err(format!(
                "the table {name} has no primary key on `key` alone, by which claims exclude each other and find their \
                 rows; add it, in the place of another one"
            )));
        }
        Ok(complete)
    }

    async fn shape(&self, connection: &mut MySqlConnection) -> Result<Shape, sqlx::Error> {
        let mut shape = Shape {
            columns: self.columns_of("", connection).await?,
            // What is not right here was refused before.
            key_is_unique: true,
            audit: self.columns_of("_audit", connection).await?,
            schema: self.columns_of("_schema", connection).await?,
            version: None,
        };
        if shape.tells_version() {
            let versions = query(&self.plain.version).fetch_all(connection).await?;
            shape.version = versions.first().map(|row| row.try_get(0)).transpose()?;
        }
        Ok(shape)
    }

    /// The one text that answers a question about the table.
    async fn text(
        &self,
        question: &'static str,
        connection: &mut MySqlConnection,
    ) -> Result<Option<String>, sqlx::Error> {
        let rows = self.about("", question).fetch_all(connection).await?;
        rows.first().map(|row| row.try_get(0)).transpose()
    }

    async fn columns_of(
        &self,
        suffix: &str,
        connection: &mut MySqlConnection,
    ) -> Result<Vec<Found>, sqlx::Error> {
        let rows = self.about(suffix, COLUMNS_OF).fetch_all(connection).await?;
        rows.iter()
            .map(|row| {
                let room: Option<i64> = row.try_get(2)?;
                let (not_null, has_default): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
                Ok(Found {
                    name: row.try_get(0)?,
                    type_name: row.try_get(1)?,
                    room: room.and_then(|room| room.try_into().ok()),
                    not_null: not_null != 0,
                    has_default: has_default != 0,
                })
            })
            .collect()
    }

    /// Says what to do where the server only says what is.
    fn advise(&self, error: StoreError) -> StoreError {
        let Some(sqlx::Error::Database(refusal)) = error.source.downcast_ref() else { return error };
        let number = refusal.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
        let advice = match number {
            Some(1044 | 1142 | 1143 | 1227) => {
                let ddl = statements::ddl(&self.table);
                let advice = "this account may not create or use the table; grant it SELECT, INSERT, UPDATE and DELETE on \
                    the three tables, and where they are missing run these statements as one that may";
                return permanent(SETTING_UP, format!("{advice} ({})\n{ddl}", error.source));
            }
            Some(1049) => "there is no such database; create it, or name another one",
            Some(1290 | 1792 | 1836) => "the server is read-only, and claims are written; name the primary",
            _ => return error,
        };
        permanent(SETTING_UP, format!("{advice} ({})", error.source))
    }

    /// A question about the table, or about a companion of it.
    fn about(&self, suffix: &str, question: &'static str) -> super::Statement {
        let name = format!("{}{suffix}", self.table.name());
        query::<MySql>(question).bind(self.table.schema().map(ToOwned::to_owned)).bind(name)
    }
}

/// Whether a column of this type holds every key, and tells two keys apart by their bytes.
fn is_bytes(type_name: &str) -> bool {
    let length = type_name.strip_prefix("varbinary(").and_then(|rest| rest.strip_suffix(')'));
    length.and_then(|length| length.parse::<u32>().ok()).is_some_and(|length| length >= 255)
}

async fn number(connection: &mut MySqlConnection, sql: &'static str) -> Result<i64, sqlx::Error> {
    query::<MySql>(sql).fetch_one(connection).await?.try_get(0)
}
