use std::{collections::BTreeSet, time::Duration};

use sqlx::{AnyConnection, Row as _};
use tokio::sync::Mutex;

use crate::{Month, database};

/// The payment provider's books: a row for each charge.
///
/// They know nothing of keys. No constraint keeps a second charge out and nobody looks before charging, so that one
/// would show. They lie in the database of the keys, behind a connection of their own.
#[derive(Debug)]
pub struct Ledger(Mutex<AnyConnection>);

impl Ledger {
    /// Opens the books in the database that `IDEM_DATABASE_URL` names, or else in the default one.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn open() -> sqlx::Result<Self> {
        let columns = "user_id VARCHAR(20) NOT NULL, month VARCHAR(7) NOT NULL, cents BIGINT NOT NULL, reference VARCHAR(32) NOT NULL";
        let connection = database::connect(&[("ledger", columns)]).await?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Charges a user, which takes its time.
    ///
    /// # Errors
    ///
    /// Nobody knows whether the charge happened.
    pub async fn charge(&self, user_id: u64, month: Month, cents: u32, reference: &str) -> sqlx::Result<()> {
        tokio::time::sleep(Duration::from_millis(5 + user_id % 16)).await;
        let mut connection = self.0.lock().await;
        let insert = match connection.backend_name() {
            "MySQL" => "INSERT INTO ledger (user_id, month, cents, reference) VALUES (?, ?, ?, ?)",
            _ => "INSERT INTO ledger (user_id, month, cents, reference) VALUES ($1, $2, $3, $4)",
        };
        let charge = sqlx::query(insert).bind(user_id.to_string()).bind(month.to_string());
        charge.bind(i64::from(cents)).bind(reference).execute(&mut *connection).await?;
        Ok(())
    }

    /// How many charges there are of these users and months, repeats included.
    ///
    /// # Errors
    ///
    /// The books cannot be read.
    pub async fn charges(&self, of: &BTreeSet<(u64, Month)>) -> sqlx::Result<u64> {
        let of: BTreeSet<_> = of.iter().map(|(user, month)| (user.to_string(), month.to_string())).collect();
        let rows = sqlx::query("SELECT user_id, month FROM ledger");
        let mut charges = 0;
        for row in rows.fetch_all(&mut *self.0.lock().await).await? {
            charges += u64::from(of.contains(&(row.try_get(0)?, row.try_get(1)?)));
        }
        Ok(charges)
    }
}
