use std::future::Future;

use sqlx::{MySql, Postgres, QueryBuilder, Sqlite, Transaction};
use uuid::Uuid;

use crate::Begin;

/// A database that can keep the [books](crate::Books): what the bank writes there, in a transaction of its caller's.
pub trait Bank: Begin {
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
    ($database:ty) => {
        impl Bank for $database {
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

bank!(Sqlite);
bank!(Postgres);
bank!(MySql);
