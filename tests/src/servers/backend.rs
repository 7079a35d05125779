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
    /// The same server behind the pooler that `IDEM_TEST_PGBOUNCER_URL` names: pgbouncer in transaction mode, with two
    /// server connections for each database.
    Pgbouncer,
    /// The MySQL or MariaDB server that `IDEM_TEST_MYSQL_URL` names; `cargo xtask test` starts one.
    Mysql,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 5] =
        [Backend::Memory, Backend::Sqlite, Backend::Postgres, Backend::Pgbouncer, Backend::Mysql];

    /// Those with a database behind them.
    pub const DATABASES: [Backend; 4] =
        [Backend::Sqlite, Backend::Postgres, Backend::Pgbouncer, Backend::Mysql];

    /// The name in test paths and in `--require`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Memory => "memory",
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::Pgbouncer => "pgbouncer",
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
            // Nothing is kept prepared, as our documents tell those who have a pooler.
            Backend::Pgbouncer => {
                let behind = Backend::Postgres.url();
                let pooler = named_by("IDEM_TEST_PGBOUNCER_URL");
                behind.and(pooler).map(|url| format!("{url}?statement-cache-capacity=0"))
            }
            Backend::Mysql => named_by("IDEM_TEST_MYSQL_URL"),
        }
    }

    /// A database of the caller's own, gone when the guard is dropped. Blocks for as long as the server needs to
    /// make it; works in and out of any runtime.
    pub fn fresh(self) -> Database {
        Database::fresh(self)
    }
}

fn named_by(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|url| !url.is_empty())
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
