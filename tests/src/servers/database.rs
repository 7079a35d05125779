use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection};
use tempfile::TempDir;
use url::Url;

use super::{Backend, backend::named_by};

/// A database that one test has to itself; dropping the guard removes it, whoever is still connected.
#[derive(Debug)]
#[must_use = "the database goes away with its guard"]
pub struct Database {
    backend: Backend,
    url: String,
    direct: String,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Memory,
    Folder(TempDir),
    Server { admin: Url, name: String },
}

/// How a database is made.
const POSTGRES: &str = "TEMPLATE template0";
/// With a collation that takes many keys for one, as servers of old have it.
const MYSQL: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci";

impl Database {
    /// One of the caller's own on Postgres, behind the pooler that `IDEM_TEST_PGBOUNCER_URL` names: pgbouncer in
    /// transaction mode, with two server connections for each database. `None` where either is missing, which is said
    /// aloud.
    #[must_use]
    pub fn behind_pgbouncer() -> Option<Database> {
        let pooler = named_by("IDEM_TEST_PGBOUNCER_URL");
        let Some((pooler, server)) = pooler.zip(Backend::Postgres.url()) else {
            eprintln!("pgbouncer, or Postgres behind it, is missing here: `cargo xtask test` starts both");
            return None;
        };
        // Nothing is kept prepared, as our documents tell those who have a pooler.
        let pooler = format!("{pooler}?statement-cache-capacity=0");
        Some(Self::on_server(Backend::Postgres, &pooler, &server, POSTGRES))
    }

    /// A fresh one of the same kind.
    pub fn another(&self) -> Database {
        if self.is_pooled() {
            return Self::behind_pgbouncer().expect("there a moment ago");
        }
        Self::fresh(self.backend)
    }

    pub(super) fn fresh(backend: Backend) -> Database {
        let server = backend.url().unwrap_or_else(|| {
            panic!("{backend} is missing here: `cargo xtask test` starts it, or ask `available()` first")
        });
        match backend {
            Backend::Memory => Database { backend, direct: server.clone(), url: server, home: Home::Memory },
            Backend::Sqlite => {
                let folder = TempDir::with_prefix("idem-test-").expect("a temporary folder");
                let url = format!("sqlite://{}", file_in(&folder).display());
                Database { backend, direct: url.clone(), url, home: Home::Folder(folder) }
            }
            Backend::Postgres => Self::on_server(backend, &server, &server, POSTGRES),
            Backend::Mysql => Self::on_server(backend, &server, &server, MYSQL),
        }
    }

    fn on_server(backend: Backend, server: &str, direct: &str, clause: &str) -> Database {
        let parse = |url| Url::parse(url).unwrap_or_else(|error| panic!("the URL of {backend}: {error}"));
        let admin = parse(direct);
        let name = unique_name();
        if let Err(error) = run_on_server(backend, &admin, format!("CREATE DATABASE {name} {clause}")) {
            panic!("no database of one's own on {backend}: its user must be allowed to create one ({error})");
        }
        let [url, direct] = [server, direct].map(|server| {
            let mut url = parse(server);
            url.set_path(&name);
            url.into()
        });
        Database { backend, url, direct, home: Home::Server { admin, name } }
    }

    /// The back end it is on.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The URL that reaches it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether a pooler stands before it.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.url != self.direct
    }

    /// The URL that reaches it past a pooler; the same where there is none.
    #[must_use]
    pub fn direct_url(&self) -> &str {
        &self.direct
    }

    /// The file of a SQLite database. It is not there before somebody creates it.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        match &self.home {
            Home::Folder(folder) => Some(file_in(folder)),
            Home::Memory | Home::Server { .. } => None,
        }
    }

    /// Where its server listens, or the pooler before it; `None` without a server.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let Home::Server { .. } = &self.home else { return None };
        let url = Url::parse(&self.url).expect("made from a URL");
        let host = url.host_str().expect("a host in the server's URL").trim_matches(['[', ']']);
        let port = url.port().unwrap_or(if self.backend == Backend::Mysql { 3306 } else { 5432 });
        (host, port).to_socket_addrs().expect("a host that resolves").next()
    }

    /// The URL that reaches it by way of `address`, where a [`Proxy`](crate::Proxy) listens; `None` without a
    /// server.
    #[must_use]
    pub fn url_through(&self, address: SocketAddr) -> Option<String> {
        let Home::Server { .. } = &self.home else { return None };
        let mut url = Url::parse(&self.url).expect("made from a URL");
        url.set_ip_host(address.ip()).expect("a URL with a host");
        url.set_port(Some(address.port())).expect("a URL with a host");
        Some(url.into())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Home::Server { admin, name } = &self.home {
            let force = if self.backend == Backend::Postgres { "WITH (FORCE)" } else { "" };
            let dropped =
                run_on_server(self.backend, admin, format!("DROP DATABASE IF EXISTS {name} {force}"));
            if let Err(error) = dropped {
                eprintln!("the database {name} stays behind: {error}");
            }
        }
    }
}

/// A connection to a MySQL server that reads SQL as the other databases do, whatever the server is set to: names in
/// double quotes, `||` between texts, a backslash like any other character, each statement committed by itself.
///
/// # Errors
///
/// The server cannot be reached, or does not take it.
pub async fn mysql_in_standard_words(url: &str) -> sqlx::Result<MySqlConnection> {
    const SETTINGS: &str = "SET SESSION autocommit = 1,
        sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'";
    let mut connection = MySqlConnection::connect(url).await?;
    sqlx::raw_sql(SETTINGS).execute(&mut connection).await?;
    Ok(connection)
}

fn file_in(folder: &TempDir) -> PathBuf {
    Path::join(folder.path(), "idem.db")
}

fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock past 1970");
    format!("idem_test_{:x}_{:x}_{count}", since_epoch.as_micros(), process::id())
}

/// On a thread and a runtime of its own, so that it works under a paused clock, in `drop`, and out of any runtime.
fn run_on_server(backend: Backend, server: &Url, statement: String) -> sqlx::Result<()> {
    let run = async || {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        if backend == Backend::Mysql {
            let mut connection = MySqlConnection::connect(server.as_str()).await?;
            statement.execute(&mut connection).await?;
            connection.close().await
        } else {
            let mut connection = PgConnection::connect(server.as_str()).await?;
            statement.execute(&mut connection).await?;
            connection.close().await
        }
    };
    let on_own_runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(sqlx::Error::Io)?
            .block_on(run())
    };
    thread::scope(|scope| scope.spawn(on_own_runtime).join().expect("the statement's thread ends"))
}

#[cfg(test)]
mod tests {
    use sqlx::{ConnectOptions, Row, SqliteConnection, sqlite::SqliteConnectOptions};

    use super::*;
    use crate::Proxy;

    async fn databases_called(name: &str) -> i64 {
        let server = Backend::Postgres.url().expect("asked for after `available`");
        let mut connection = PgConnection::connect(&server).await.expect("a connection");
        let counted = sqlx::query("SELECT count(*) FROM pg_database WHERE datname = $1").bind(name);
        counted.fetch_one(&mut connection).await.expect("a count").get(0)
    }

    #[tokio::test]
    async fn a_sqlite_database_is_a_file_of_its_own_and_goes_with_its_guard() {
        let (first, second) = (Backend::Sqlite.fresh(), Backend::Sqlite.fresh());
        assert_ne!(first.url(), second.url());
        let options: SqliteConnectOptions = first.url().parse().expect("a SQLite URL");
        let mut connection: SqliteConnection =
            options.create_if_missing(true).connect().await.expect("a connection");
        sqlx::raw_sql("CREATE TABLE t (a)").execute(&mut connection).await.expect("a table");
        let file = first.file().expect("SQLite has a file");
        assert!(file.exists());
        assert!(!second.file().expect("SQLite has a file").exists());
        drop(first);
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_postgres_database_is_its_tests_own_and_goes_with_its_guard() {
        if !Backend::Postgres.available() {
            return;
        }
        let (first, second) = (Backend::Postgres.fresh(), Backend::Postgres.fresh());
        let mut in_first = PgConnection::connect(first.url()).await.expect("a connection");
        let mut in_second = PgConnection::connect(second.url()).await.expect("a connection");
        sqlx::raw_sql("CREATE TABLE t (a int)").execute(&mut in_first).await.expect("a table");
        sqlx::raw_sql("CREATE TABLE t (a int)")
            .execute(&mut in_second)
            .await
            .expect("the same name, elsewhere");

        let Home::Server { name, .. } = &first.home else { panic!("{first:?}") };
        let name = name.clone();
        assert_eq!(databases_called(&name).await, 1);
        drop(first);
        assert_eq!(databases_called(&name).await, 0, "dropped although a connection was open");
    }

    #[tokio::test]
    async fn a_postgres_database_is_reached_through_a_proxy() {
        if !Backend::Postgres.available() {
            return;
        }
        let database = Backend::Postgres.fresh();
        let proxy = Proxy::to(database.address().expect("a server"));
        let url = database.url_through(proxy.address()).expect("a server");
        let mut connection = PgConnection::connect(&url).await.expect("a connection through the proxy");
        connection.ping().await.expect("an answer");

        proxy.cut();
        connection.ping().await.expect_err("the connection is gone");
        PgConnection::connect(&url).await.expect("a new connection is let through");
    }

    #[tokio::test]
    async fn a_mysql_database_is_its_tests_own_and_goes_with_its_guard() {
        if !Backend::Mysql.available() {
            return;
        }
        let (first, second) = (Backend::Mysql.fresh(), Backend::Mysql.fresh());
        for database in [&first, &second] {
            let mut connection = mysql_in_standard_words(database.url()).await.expect("a connection");
            let create = "CREATE TABLE \"t\" (a varchar(9)); INSERT INTO t VALUES ('a\\' || 'b')";
            sqlx::raw_sql(create).execute(&mut connection).await.expect("a table");
            let loosely = "SELECT count(*) FROM t WHERE a = 'A\\B'";
            let found = sqlx::raw_sql(loosely).fetch_one(&mut connection).await.expect("a count");
            assert_eq!(found.get::<i64, _>(0), 1, "its collation takes no notice of case");
        }
        let gone = first.url().to_owned();
        drop(first);
        MySqlConnection::connect(&gone).await.expect_err("dropped although connections were open");
        MySqlConnection::connect(second.url()).await.expect("not the other one");
    }

    #[test]
    fn a_missing_server_says_how_to_get_it() {
        if Backend::Postgres.available() {
            return;
        }
        let refused =
            std::panic::catch_unwind(|| Backend::Postgres.fresh()).expect_err("nothing to connect to");
        let message = refused.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains("cargo xtask test"), "{message}");
    }
}
