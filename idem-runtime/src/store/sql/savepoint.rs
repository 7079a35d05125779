//! Savepoints in a transaction that is not ours, by the counter that sqlx keeps on its connection: so that its own
//! commit, rollback and drop know of them.

use sqlx_core::{database::Database, transaction::TransactionManager};

use crate::store::{
    Answer, StoreError,
    sql::restless,
    transaction::{Halt, Savepoint},
};

/// How deep in a transaction the connection is, as sqlx counts: one is a transaction, two a savepoint in it.
pub(crate) fn depth<DB: Database>(connection: &DB::Connection) -> usize {
    DB::TransactionManager::get_transaction_depth(connection)
}

/// Whether the savepoint is still open.
pub(crate) fn is_open<DB: Database>(connection: &DB::Connection, savepoint: &Savepoint) -> bool {
    savepoint.level.is_some_and(|level| depth::<DB>(connection) >= level)
}

/// Opens the savepoint. The connection must be in a transaction that takes statements: where it is not, sqlx rolls the
/// caller's own transaction back and says nothing of it when that is committed.
pub(crate) async fn open<DB: Database>(
    connection: &mut DB::Connection,
    savepoint: &mut Savepoint,
    fault: fn(sqlx::Error) -> Halt,
) -> Result<(), Halt> {
    DB::TransactionManager::begin(connection, None).await.map_err(fault)?;
    let level = depth::<DB>(connection);
    savepoint.level = Some(level);
    if level < 2 {
        // The transaction that was still counted had been dropped, and ended first.
        roll_back::<DB>(connection, savepoint).await?;
        return Err(Halt::Outside);
    }
    Ok(())
}

/// Undoes what was done since the savepoint. Where that fails, the transaction is gone: the guard of the savepoint
/// still sees it open, and has sqlx count it as undone.
pub(crate) async fn roll_back<DB: Database>(
    connection: &mut DB::Connection,
    savepoint: &mut Savepoint,
) -> Result<(), Halt> {
    while is_open::<DB>(connection, savepoint) {
        savepoint.is_ending = true;
        DB::TransactionManager::rollback(connection).await.map_err(lost)?;
    }
    *savepoint = Savepoint::default();
    Ok(())
}

/// A body's own transaction that it began and forgot.
pub(crate) fn left_open() -> Halt {
    Halt::Lost("the body left a transaction inside of it open".into())
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
