//! Savepoints in a transaction that is not ours, by the counter that sqlx keeps on its connection: so that its own
//! commit, rollback and drop know of them.

use sqlx_core::{database::Database, transaction::TransactionManager};

use crate::store::{
    Answer, StoreError,
    sql::restless,
    transaction::{Halt, Savepoint},
};

/// Whether sqlx knows of a transaction on the connection.
pub(crate) fn is_inside<DB: Database>(connection: &DB::Connection) -> bool {
    DB::TransactionManager::get_transaction_depth(connection) > 0
}

/// Opens the savepoint. The connection must be in a transaction that takes statements: where it is not, sqlx rolls the
/// caller's own transaction back and says nothing of it when that is committed.
pub(crate) async fn open<DB: Database>(
    connection: &mut DB::Connection,
    savepoint: &mut Savepoint,
    fault: fn(sqlx::Error) -> Halt,
) -> Result<(), Halt> {
    DB::TransactionManager::begin(connection, None).await.map_err(fault)?;
    savepoint.is_open = true;
    Ok(())
}

/// Releases the savepoint: what was done since is the caller's to commit.
pub(crate) async fn release<DB: Database>(
    connection: &mut DB::Connection,
    savepoint: &mut Savepoint,
) -> Result<(), Halt> {
    DB::TransactionManager::commit(connection).await.map_err(lost)?;
    savepoint.is_open = false;
    Ok(())
}

/// Undoes what was done since the savepoint. Where that fails, the transaction is gone: the guard of the savepoint
/// still sees it open, and has sqlx count it as undone.
pub(crate) async fn roll_back<DB: Database>(
    connection: &mut DB::Connection,
    savepoint: &mut Savepoint,
) -> Result<(), Halt> {
    DB::TransactionManager::rollback(connection).await.map_err(lost)?;
    savepoint.is_open = false;
    Ok(())
}

pub(crate) fn lost(error: sqlx::Error) -> Halt {
    Halt::Lost(error.into())
}

/// The one answer of a batch of one. A row that others change all the time is no reason to give the job up.
pub(crate) fn one(answers: Result<Vec<Answer>, StoreError>, context: &'static str) -> Result<Answer, Halt> {
    let answer = answers.map(|answers| answers.into_iter().next());
    let answer = answer.and_then(|answer| answer.ok_or_else(|| restless(context)));
    answer.map_err(|error| Halt::Conflict(error.source))
}
