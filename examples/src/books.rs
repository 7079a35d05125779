use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AnyConnection, Row as _};
use uuid::Uuid;

use crate::database;

/// The bank's books: an account is a row with its cents, a posting is a row for a transfer and one of its accounts.
///
/// They know nothing of keys. No constraint keeps a second posting out and nobody looks before posting, so that one
/// would show. They lie in the database of the keys.
#[derive(Debug)]
pub struct Books(AnyConnection);

/// What stands in the books.
#[derive(Debug)]
pub struct Balance {
    /// The cents of all accounts.
    pub sum: i64,
    /// The postings of the transfers that were asked for.
    pub postings: u64,
    /// Whether each account has what it was opened with and what was posted to it, to the cent.
    pub is_right: bool,
}

impl Books {
    /// Opens the books in the database that `IDEM_DATABASE_URL` names, or else in the default one.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn open() -> sqlx::Result<Self> {
        let accounts = "id BIGINT NOT NULL, opened_with BIGINT NOT NULL, cents BIGINT NOT NULL";
        let postings = "transfer_id VARCHAR(36) NOT NULL, account BIGINT NOT NULL, cents BIGINT NOT NULL";
        Ok(Self(database::connect(&[("accounts", accounts), ("postings", postings)]).await?))
    }

    /// Adds everything up.
    ///
    /// # Errors
    ///
    /// The books cannot be read.
    pub async fn balance(&mut self, transfers: &BTreeSet<Uuid>) -> sqlx::Result<Balance> {
        let mut expected = BTreeMap::<i64, i64>::new();
        let mut found = BTreeMap::<i64, i64>::new();
        let accounts = sqlx::query("SELECT id, opened_with, cents FROM accounts");
        for row in accounts.fetch_all(&mut self.0).await? {
            *expected.entry(row.try_get(0)?).or_default() += row.try_get::<i64, _>(1)?;
            *found.entry(row.try_get(0)?).or_default() += row.try_get::<i64, _>(2)?;
        }
        let mut count = 0;
        let postings = sqlx::query("SELECT transfer_id, account, cents FROM postings");
        for row in postings.fetch_all(&mut self.0).await? {
            *expected.entry(row.try_get(1)?).or_default() += row.try_get::<i64, _>(2)?;
            let transfer = row.try_get::<String, _>(0)?.parse::<Uuid>();
            count += u64::from(transfer.is_ok_and(|transfer| transfers.contains(&transfer)));
        }
        Ok(Balance { sum: found.values().sum(), postings: count, is_right: expected == found })
    }
}
