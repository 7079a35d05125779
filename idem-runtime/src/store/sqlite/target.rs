//! What a URL says of the database: where it is, and how it may be opened.

use std::str::FromStr;

use sqlx::sqlite::SqliteConnectOptions;

use crate::{error::Error, store::without_password};

#[derive(Debug)]
pub(super) struct Target {
    pub(super) options: SqliteConnectOptions,
    pub(super) in_memory: bool,
    pub(super) read_only: bool,
}

impl Target {
    /// A file is created unless the URL says `mode=rw` or `mode=ro`.
    pub(super) fn of(url: &str) -> Result<Self, Error> {
        let malformed = |reason: &dyn std::fmt::Display| {
            Error::config(format!(
                "`{}` is not a SQLite URL ({reason}); write `sqlite://idem.db` or `sqlite::memory:`",
                without_password(url)
            ))
        };
        let rest = url.trim_start_matches("sqlite:").trim_start_matches("//");
        let (file, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mode = query.split('&').filter_map(|pair| pair.strip_prefix("mode=")).next_back();
        if file.is_empty() {
            return Err(malformed(&"it names no file"));
        }
        let options = SqliteConnectOptions::from_str(url).map_err(|error| malformed(&error))?;
        Ok(Self {
            options: if mode.is_none() { options.create_if_missing(true) } else { options },
            in_memory: file == ":memory:" || mode == Some("memory"),
            read_only: mode == Some("ro"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(url: &str) -> Option<(bool, bool)> {
        Target::of(url).ok().map(|target| (target.in_memory, target.read_only))
    }

    #[test]
    fn a_url_says_where_and_how() {
        assert_eq!(flags("sqlite://idem.db"), Some((false, false)));
        assert_eq!(flags("sqlite:///var/lib/idem.db?mode=rw"), Some((false, false)));
        assert_eq!(flags("sqlite://idem.db?mode=ro"), Some((false, true)));
        assert_eq!(flags("sqlite::memory:"), Some((true, false)));
        assert_eq!(flags("sqlite://:memory:"), Some((true, false)));
        assert_eq!(flags("sqlite://x?mode=memory"), Some((true, false)));
    }

    #[test]
    fn a_malformed_url_is_refused_with_an_example() {
        for url in
            ["sqlite:", "sqlite://", "sqlite://?mode=rw", "sqlite://x?mode=rx", "sqlite://x?colour=red"]
        {
            let refused = Target::of(url).map(|_| ()).map_err(|error| error.to_string());
            assert!(refused.is_err_and(|error| error.contains("sqlite://idem.db")), "{url}");
        }
    }
}
