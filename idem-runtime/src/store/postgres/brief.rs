//! A transaction of our own, as brief as can be.

use sqlx::{Connection, PgConnection, Postgres, Transaction};

/// What others have committed shows at once, whatever the default. A process that freezes half way through lets go of
/// its locks.
const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5s'";

pub(super) async fn begin(connection: &mut PgConnection) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
    connection.begin_with(BEGIN).await
}

/// Ends a transaction at once, as its work ended; dropped, it would stay open until the connection is used again.
pub(super) async fn end<T>(
    transaction: Transaction<'_, Postgres>,
    result: Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    match result {
        Ok(value) => transaction.commit().await.map(|()| value),
        Err(error) => transaction.rollback().await.and(Err(error)),
    }
}
