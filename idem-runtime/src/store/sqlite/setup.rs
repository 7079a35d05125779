//! Whether the table is there and is ours; making it where it is not.

use std::time::Duration;

use sqlx::{Connection, Row, Sqlite, SqliteConnection, raw_sql};

use super::{
    BEGIN, SqliteStore,
    statements::{self, affinity},
};
use crate::store::{
    ErrorClass, StoreError,
    sql::{Fault, Found, Shape, missing, permanent},
};

const SETTING_UP: &str = "setting up the table of idempotency keys";

/// How long several processes that start at once wait for each other.
const PATIENCE: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

impl SqliteStore {
    pub(super) async fn set_up(&self, create: bool) -> Result<(), StoreError> {
        if self.read_only {
            return Err(permanent(
                SETTING_UP,
                "the URL opens the database read-only, and claims are written; leave out `mode=ro`"
                    .to_owned(),
            ));
        }
        for _ in 0..PATIENCE {
            match self.try_set_up(create).await {
                // Whoever holds the file is setting it up, or writes something short.
                Err(error) if error.class == ErrorClass::Transient => tokio::time::sleep(PAUSE).await,
                done => return done.map_err(advise),
            }
        }
        self.try_set_up(create).await.map_err(advise)
    }

    async fn try_set_up(&self, create: bool) -> Result<(), StoreError> {
        let mut held = self.writer(SETTING_UP).await?;
        let done = self.check_or_create(held.connection(), create).await;
        held.settle(SETTING_UP, done)?.map_err(|wrong| permanent(SETTING_UP, wrong))
    }

    async fn check_or_create(
        &self,
        connection: &mut SqliteConnection,
        create: bool,
    ) -> Result<Result<(), String>, sqlx::Error> {
        if self.is_complete(connection).await? == Ok(true) {
            return writable(connection).await.map(Ok);
        }
        // Another process may be half way through creating the table: what is wrong is wrong under the lock.
        let mut transaction = connection.begin_with(BEGIN).await?;
        let mut complete = self.is_complete(&mut transaction).await?;
        if complete == Ok(false) && create {
            raw_sql(&self.statements.ddl).execute(&mut *transaction).await?;
            complete = self.is_complete(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(complete.and_then(|complete| if complete { Ok(()) } else { Err(self.missing()) }))
    }

    fn missing(&self) -> String {
        missing(&self.table, &statements::ddl(&self.table))
    }

    async fn is_complete(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<Result<bool, String>, sqlx::Error> {
        Ok(self.shape(connection).await?.is_complete(&self.table, statements::COLUMNS))
    }

    async fn shape(&self, connection: &mut SqliteConnection) -> Result<Shape, sqlx::Error> {
        let mut shape = Shape {
            columns: self.columns_of("", connection).await?,
            key_is_unique: self.key_is_unique(connection).await?,
            audit: self.columns_of("_audit", connection).await?,
            schema: self.columns_of("_schema", connection).await?,
            version: None,
        };
        if shape.tells_version() {
            let versions = sqlx::query(&self.statements.version).fetch_all(connection).await?;
            shape.version = versions.first().map(|row| row.try_get(0)).transpose()?;
        }
        Ok(shape)
    }

    async fn columns_of(
        &self,
        suffix: &str,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<Found>, sqlx::Error> {
        const COLUMNS: &str = "
            SELECT name, type, \"notnull\" AND pk = 0, dflt_value IS NOT NULL FROM pragma_table_info(?1, 'main')";
        let name = format!("{}{suffix}", self.table.name());
        let rows = sqlx::query::<Sqlite>(COLUMNS).bind(name).fetch_all(connection).await?;
        rows.iter()
            .map(|row| {
                let declared: String = row.try_get(1)?;
                Ok(Found {
                    name: row.try_get(0)?,
                    type_name: affinity(&declared).to_owned(),
                    // A length in a type's name limits nothing.
                    room: None,
                    not_null: row.try_get(2)?,
                    has_default: row.try_get(3)?,
                })
            })
            .collect()
    }

    async fn key_is_unique(&self, connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        const UNIQUE: &str = "
            SELECT 1 FROM pragma_index_list(?1, 'main') AS one
            WHERE one.\"unique\" AND NOT one.partial
                AND (SELECT group_concat(name || ' ' || coll) FROM pragma_index_xinfo(one.name, 'main') WHERE key)
                    = 'key BINARY'";
        let found = sqlx::query::<Sqlite>(UNIQUE).bind(self.table.name()).fetch_all(connection).await?;
        Ok(!found.is_empty())
    }
}

/// Finds out that the file cannot be written, without writing it.
async fn writable(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    match connection.begin_with(BEGIN).await {
        Ok(transaction) => transaction.rollback().await,
        Err(error) if Fault::of::<Sqlite>(&error) == Fault::Busy => Ok(()),
        Err(error) => Err(error),
    }
}

/// Says what to do where SQLite only says what is.
fn advise(error: StoreError) -> StoreError {
    let Some(sqlx::Error::Database(refusal)) = error.source.downcast_ref() else { return error };
    let code = refusal.code().and_then(|code| code.parse::<i32>().ok());
    let advice = match code.map(|code| code & 0xff) {
        Some(14) => "the file cannot be opened; create its folder, and with `mode=rw` the file itself",
        Some(8) => {
            "the database is read-only, and claims are written; give this process the right to write the file and its folder"
        }
        Some(26) => "the file is not a SQLite database; name another one",
        _ => return error,
    };
    permanent(SETTING_UP, format!("{advice} ({})", error.source))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, sync::Arc};

    use super::*;
    use crate::store::{Store, StoreOptions, open};

    /// A database file of its own, gone with the test.
    struct File(PathBuf);

    impl File {
        fn new(name: &str) -> Self {
            let file = Self(std::env::temp_dir().join(format!("idem-{}-{name}.db", std::process::id())));
            file.remove();
            file
        }

        fn url(&self) -> String {
            format!("sqlite://{}", self.0.display())
        }

        fn store(&self) -> Arc<dyn Store> {
            open(&StoreOptions::new(self.url())).expect("the URL is well formed")
        }

        async fn run(&self, sql: &'static str) {
            let mut options: sqlx::sqlite::SqliteConnectOptions = self.url().parse().expect("a URL");
            options = options.create_if_missing(true);
            let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
            raw_sql(sql).execute(&mut connection).await.expect("a statement");
            connection.close().await.expect("a clean end");
        }

        fn remove(&self) {
            for suffix in ["", "-wal", "-shm"] {
                let _ = fs::remove_file(format!("{}{suffix}", self.0.display()));
            }
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            self.remove();
        }
    }

    async fn refusal(store: &dyn Store, create: bool) -> String {
        let error = store.prepare(create).await.expect_err("it is refused");
        assert_eq!(error.class, ErrorClass::Permanent);
        error.to_string()
    }

    #[tokio::test]
    async fn many_that_start_at_once_make_one_table() {
        let file = File::new("start");
        let starts: Vec<_> = (0..10)
            .map(|_| file.store())
            .map(|store| tokio::spawn(async move { store.prepare(true).await }))
            .collect();
        for start in starts {
            start.await.expect("no panic").expect("a table");
        }
    }

    #[tokio::test]
    async fn without_migrations_a_missing_table_names_the_remedy() {
        let file = File::new("missing");
        assert!(refusal(&*file.store(), false).await.contains("`Idem::ddl()`"));
        let ddl = file.store().ddl();
        let mut connection =
            SqliteConnection::connect(&format!("{}?mode=rw", file.url())).await.expect("the file is there");
        raw_sql(sqlx::AssertSqlSafe(ddl))
            .execute(&mut connection)
            .await
            .expect("the statements run as they are");
        file.store().prepare(false).await.expect("the table is complete");
    }

    #[tokio::test]
    async fn a_table_that_lacks_columns_is_refused_with_the_statements_to_run() {
        let file = File::new("lacking");
        file.run(
            "CREATE TABLE idempotency_keys (key TEXT PRIMARY KEY, status TEXT NOT NULL, completed_at TEXT,
                created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)",
        )
        .await;
        let text = refusal(&*file.store(), true).await;
        let (_, statements) = text.split_once("run\n").expect("statements");
        assert!(statements.contains("ALTER TABLE \"idempotency_keys\" ADD COLUMN owner TEXT;"));
        let mut connection = SqliteConnection::connect(&file.url()).await.expect("the file is there");
        raw_sql(sqlx::AssertSqlSafe(statements))
            .execute(&mut connection)
            .await
            .expect("they run as they are");
        file.store().prepare(true).await.expect("nothing is lacking now");
    }

    #[tokio::test]
    async fn what_is_not_our_table_is_named() {
        let file = File::new("foreign");
        file.run("CREATE TABLE idempotency_keys (id INTEGER PRIMARY KEY, name TEXT)").await;
        assert!(refusal(&*file.store(), true).await.contains("it has no column `key`"));
    }

    #[tokio::test]
    async fn a_wrong_type_is_named() {
        let file = File::new("types");
        file.store().prepare(true).await.expect("a table");
        file.run("ALTER TABLE idempotency_keys DROP COLUMN fence").await;
        file.run("ALTER TABLE idempotency_keys ADD COLUMN fence TEXT").await;
        assert!(
            refusal(&*file.store(), true)
                .await
                .contains("column `fence` of \"idempotency_keys\" has type `TEXT`")
        );
    }

    #[tokio::test]
    async fn a_key_that_may_repeat_is_refused() {
        let file = File::new("repeat");
        let ddl = "CREATE TABLE idempotency_keys AS SELECT * FROM made; DROP TABLE made;
            ALTER TABLE idempotency_keys DROP COLUMN key; ALTER TABLE idempotency_keys ADD COLUMN key TEXT";
        file.store().prepare(true).await.expect("a table");
        file.run("ALTER TABLE idempotency_keys RENAME TO made").await;
        file.run(ddl).await;
        assert!(refusal(&*file.store(), true).await.contains("no primary key or unique index on `key`"));
    }

    #[tokio::test]
    async fn a_newer_schema_is_refused_by_its_number() {
        let file = File::new("newer");
        file.store().prepare(true).await.expect("a table");
        file.run("UPDATE idempotency_keys_schema SET version = 7").await;
        assert!(refusal(&*file.store(), true).await.contains("schema version 7"));
    }

    #[tokio::test]
    async fn a_read_only_database_is_refused_with_the_remedy() {
        let file = File::new("read-only");
        file.store().prepare(true).await.expect("a table");
        let store = open(&StoreOptions::new(format!("{}?mode=ro", file.url()))).expect("a store");
        assert!(refusal(&*store, true).await.contains("leave out `mode=ro`"));
    }

    #[tokio::test]
    async fn a_file_that_is_not_to_be_created_is_missed() {
        let file = File::new("absent");
        let store = open(&StoreOptions::new(format!("{}?mode=rw", file.url()))).expect("a store");
        assert!(refusal(&*store, true).await.contains("with `mode=rw` the file itself"));
    }

    #[tokio::test]
    async fn a_file_of_another_kind_is_named() {
        let file = File::new("text");
        fs::write(&file.0, "not a database, and long enough to be looked at as one").expect("a file");
        assert!(refusal(&*file.store(), true).await.contains("not a SQLite database"));
    }

    #[tokio::test]
    async fn a_table_that_is_in_place_is_prepared_beside_a_foreign_writer() {
        let file = File::new("beside");
        file.store().prepare(true).await.expect("a table");
        let mut foreign = SqliteConnection::connect(&file.url()).await.expect("a connection");
        let transaction = foreign.begin_with(BEGIN).await.expect("the write lock");
        file.store().prepare(true).await.expect("no write is needed");
        transaction.rollback().await.expect("a clean end");
    }
}
