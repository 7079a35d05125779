//! Which of the two a server is: they part where a statement is not to wait for a lock.

use sqlx::{MySqlConnection, Row, query};

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// A statement says itself that it does not wait.
    MariaDb,
    /// Only a locking read can refuse to wait: one goes ahead of each write.
    MySql,
}

/// The oldest releases with all that the statements use: `SKIP LOCKED` and `JSON_TABLE`.
const OLDEST_MARIADB: [u32; 3] = [10, 6, 1];
const OLDEST_MYSQL: [u32; 3] = [8, 0, 4];

impl Server {
    /// What the server says of itself.
    pub(super) async fn version(connection: &mut MySqlConnection) -> Result<String, sqlx::Error> {
        query("SELECT CONVERT(VERSION() USING utf8mb4)").fetch_one(connection).await?.try_get(0)
    }

    pub(super) fn of(version: &str) -> Self {
        if version.contains("MariaDB") { Self::MariaDb } else { Self::MySql }
    }

    /// Whether a release has all that the statements use, or what is wrong with it.
    pub(super) fn check(version: &str) -> Result<(), String> {
        let mut numbers =
            version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
        let found = [(); 3].map(|()| numbers.next().unwrap_or(0));
        let oldest = match Self::of(version) {
            Self::MariaDb => OLDEST_MARIADB,
            Self::MySql => OLDEST_MYSQL,
        };
        if found >= oldest {
            return Ok(());
        }
        Err(format!(
            "the server is version {version}; MySQL 8.0.4 or MariaDB 10.6.1 is the oldest that will do"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_version() {
        for (version, server) in [
            ("10.11.19-MariaDB-0+deb12u1", Server::MariaDb),
            ("11.8.2-MariaDB-log", Server::MariaDb),
            ("8.0.43", Server::MySql),
            ("8.4.6-6-Percona", Server::MySql),
            ("9.1.0-log", Server::MySql),
        ] {
            assert_eq!(Server::of(version), server, "{version}");
            assert_eq!(Server::check(version), Ok(()));
        }
        for version in ["10.5.29-MariaDB", "10.6.0-MariaDB", "5.7.44-log", "8.0.3", ""] {
            let refused = Server::check(version).expect_err("too old");
            assert!(refused.contains(version) && refused.contains("MariaDB 10.6.1"), "{refused}");
        }
    }
}
