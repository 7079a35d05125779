use std::future::Future;

use idem_runtime::TransactDatabase;
use sqlx::{MySql, Postgres, QueryBuilder, Sqlite, Transaction};
use uuid::Uuid;

/// A database that can keep the [books](crate::Books): what the bank writes there, in a transaction of its caller's.
pub trait Bank: TransactDatabase {
    /// How a transaction begins that will write.
    const BEGIN: &'static str;

    /// Opens an account.
    ///
    /// # Errors
    ///
    /// The database refuses it.
    fn open_account(
        tx: &mut Transaction<'_, Self>,
        account: i64,
        cents: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Posts one half of a transfer, and changes the account by it.
    ///
    /// # Errors
    ///
    /// The database refuses it.
    fn post(
        tx: &mut Transaction<'_, Self>,
        transfer_id: Uuid,
        account: i64,
        cents: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}

macro_rules! bank {
    ($database:ty, $begin:literal) => {
        impl Bank for $database {
            const BEGIN: &'static str = $begin;

            async fn open_account(
                tx: &mut Transaction<'_, Self>,
                account: i64,
                cents: i64,
            ) -> sqlx::Result<()> {
                let mut insert = QueryBuilder::new("INSERT INTO accounts (id, opened_with, cents) VALUES (");
                insert.separated(", ").push_bind(account).push_bind(cents).push_bind(cents);
                insert.push(")").build().execute(&mut **tx).await?;
                Ok(())
            }

            async fn post(
                tx: &mut Transaction<'_, Self>,
                transfer_id: Uuid,
                account: i64,
                cents: i64,
            ) -> sqlx::Result<()> {
                let mut insert =
                    QueryBuilder::new("INSERT INTO postings (transfer_id, account, cents) VALUES (");
                insert.separated(", ").push_bind(transfer_id.to_string()).push_bind(account).push_bind(cents);
                insert.push(")").build().execute(&mut **tx).await?;
                let mut update = QueryBuilder::new("UPDATE accounts SET cents = cents + ");
                update.push_bind(cents).push(" WHERE id = ").push_bind(account);
                update.build().execute(&mut **tx).await?;
                Ok(())
            }
        }
    };
}

// SQLite has one writer at a time: who will write says so at the beginning.
bank!(Sqlite, "BEGIN IMMEDIATE");
bank!(Postgres, "BEGIN");
bank!(MySql, "BEGIN");
