use std::{env, fmt};

use super::Database;

/// Where keys can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// `memory:`, in this process.
    Memory,
    /// A SQLite file.
    Sqlite,
    /// The PostgreSQL server that `IDEM_TEST_POSTGRES_URL` names; `cargo xtask test` starts one.
    Postgres,
    /// The MySQL or MariaDB server that `IDEM_TEST_MYSQL_URL` names; `cargo xtask test` starts one.
    Mysql,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 4] = [Backend::Memory, Backend::Sqlite, Backend::Postgres, Backend::Mysql];

    /// Those with a database behind them.
    pub const DATABASES: [Backend; 3] = [Backend::Sqlite, Backend::Postgres, Backend::Mysql];

    /// The name in test paths, in `--require` and in the features of `idem-runtime`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Memory => "memory",
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::Mysql => "mysql",
        }
    }

    /// Whether a test can run on it here and now. The memory and SQLite always can.
    #[must_use]
    pub fn available(self) -> bool {
        self.url().is_some()
    }

    /// The URL of the back end itself; `None` where it is missing. A test works on a [`fresh`](Self::fresh)
    /// database instead.
    #[must_use]
    pub fn url(self) -> Option<String> {
        match self {
            Backend::Memory => Some("memory:".to_owned()),
            Backend::Sqlite => Some("sqlite::memory:".to_owned()),
            Backend::Postgres => named_by("IDEM_TEST_POSTGRES_URL"),
            Backend::Mysql => named_by("IDEM_TEST_MYSQL_URL"),
        }
    }

    /// A [`fresh`](Self::fresh) database, or `None` where the back end is missing, which is said aloud.
    #[must_use]
    pub fn database(self) -> Option<Database> {
        if self.available() {
            return Some(self.fresh());
        }
        eprintln!("{self} is missing here: `cargo xtask test` starts it");
        None
    }

    /// A database of the caller's own, gone when the guard is dropped. Blocks for as long as the server needs to
    /// make it; works in and out of any runtime.
    pub fn fresh(self) -> Database {
        Database::fresh(self)
    }
}

pub(super) fn named_by(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|url| !url.is_empty())
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
