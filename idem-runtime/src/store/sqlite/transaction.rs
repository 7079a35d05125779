//! The table inside a caller's transaction, in SQLite's words.

use std::{fmt::Write as _, slice, time::Duration};

use sqlx::{
    AssertSqlSafe, Connection as _, Row as _, Sqlite, SqliteConnection, query, raw_sql, sqlite::SqliteRow,
};
use sqlx_core::{database::Database, transaction::TransactionManager};

use super::{CLAIMING, FINISHING, READING, RENEWING, REPLACING, SqliteStore, Statement};
use crate::{
    block_on::block_on_for,
    record::Record,
    store::{
        Answer, Finish, Insert, Renew, Replace,
        sql::{ATTEMPTS, Batch, Cells, Fault, bind_claim, explain, record, restless, savepoint, unreplaced},
        transaction::{Halt, Savepoint, Step, Transaction},
    },
};

type Manager = <Sqlite as Database>::TransactionManager;

/// A caller's transaction on SQLite.
///
/// Nothing waits here for a lock by itself: a transaction that has the write lock meets committed rows only, and one
/// that has not waits for it as long as the caller's own connection does.
pub(super) struct SqliteTransaction<'a> {
    pub(super) store: &'a SqliteStore,
    pub(super) connection: &'a mut SqliteConnection,
    pub(super) savepoint: &'a mut Savepoint,
}

impl SqliteTransaction<'_> {
    async fn run(&mut self, context: &'static str, statement: Statement) -> Result<Vec<SqliteRow>, Halt> {
        statement.fetch_all(&mut *self.connection).await.map_err(|error| halt(context, error))
    }

    async fn insert(&mut self, insert: &Insert) -> Result<Answer, Halt> {
        let mut batch = Batch::of(slice::from_ref(insert), |insert| &insert.key);
        // Written first: a transaction that began by reading could not wait for the write lock.
        let rows = self.run(CLAIMING, self.store.insert_statement(insert)).await?;
        batch.answer_written(&rows).map_err(Halt::Refused)?;
        if !batch.is_done()
            && let Some(record) = self.read(&insert.key).await?
        {
            batch.answer_found(record, Insert::made);
        }
        savepoint::one(batch.finish(CLAIMING), CLAIMING)
    }

    async fn replace(&mut self, replace: &Replace) -> Result<Answer, Halt> {
        for _ in 0..ATTEMPTS {
            let rows = self.run(REPLACING, self.store.replace_statement(replace)).await?;
            if let Some(row) = rows.first() {
                return Ok(Answer::Written { fence: Cells::of(row).next().map_err(Halt::Refused)? });
            }
            let found = self.read(&replace.key).await?;
            if let Some(answer) = unreplaced(replace, found) {
                return Ok(answer);
            }
        }
        Err(Halt::Conflict(restless(REPLACING).source))
    }

    async fn finish(&mut self, finish: &Finish) -> Result<Answer, Halt> {
        let mut batch = Batch::of(slice::from_ref(finish), |finish| &finish.key);
        let rows = self.run(FINISHING, self.store.finish_statement(finish)).await?;
        batch.answer_written(&rows).map_err(Halt::Refused)?;
        if !batch.is_done() {
            batch.answer_unfinished(self.read(&finish.key).await?.into_iter().collect());
        }
        savepoint::one(batch.finish(FINISHING), FINISHING)
    }

    async fn stands(&mut self, job: &Renew) -> Result<bool, Halt> {
        let stands = bind_claim(query(&self.store.statements.stands), job, false);
        Ok(!self.run(RENEWING, stands).await?.is_empty())
    }

    async fn read(&mut self, key: &str) -> Result<Option<Record>, Halt> {
        let rows = self.run(READING, query(&self.store.statements.read_one).bind(key.to_owned())).await?;
        let read = |row: &SqliteRow| {
            let mut cells = Cells::of(row);
            let key = cells.next()?;
            record(&mut cells, key)
        };
        rows.first().map(read).transpose().map_err(Halt::Refused)
    }

    async fn open(&mut self) -> Result<(), Halt> {
        if savepoint::depth::<Sqlite>(self.connection) == 0 {
            return Err(Halt::Outside);
        }
        savepoint::open::<Sqlite>(self.connection, self.savepoint, savepoint::lost).await
    }

    /// Keeps what was done since the savepoint, for the caller to commit.
    async fn release(&mut self) -> Result<(), Halt> {
        if self.savepoint.level != Some(savepoint::depth::<Sqlite>(self.connection)) {
            return Err(savepoint::left_open());
        }
        self.savepoint.is_ending = true;
        Manager::commit(self.connection).await.map_err(savepoint::lost)?;
        *self.savepoint = Savepoint::default();
        Ok(())
    }

    async fn undo(&mut self) -> Result<(), Halt> {
        let undone = savepoint::roll_back::<Sqlite>(self.connection, self.savepoint).await;
        if let (Err(_), Some(level)) = (&undone, self.savepoint.level.take()) {
            // Where even this fails, the connection is of no use to anybody.
            let _ = self.stand_in(level).await;
        }
        undone
    }

    /// Begins a transaction in the place of one that is gone, which can be rolled back and never committed. sqlx would
    /// go on counting the one that is gone, and take the next over this connection for a savepoint in it.
    async fn stand_in(&mut self, level: usize) -> sqlx::Result<()> {
        let _ = raw_sql("ROLLBACK").execute(&mut *self.connection).await;
        let checked = query("SELECT foreign_keys FROM pragma_foreign_keys").fetch_one(&mut *self.connection);
        if checked.await?.try_get::<i64, _>(0)? == 0 {
            return Ok(());
        }
        let mut begin = String::from(UNFINISHED);
        for level in 1..savepoint::depth::<Sqlite>(self.connection) {
            // Into memory it does not fail.
            let _ = write!(begin, "; SAVEPOINT _sqlx_savepoint_{level}");
        }
        raw_sql(AssertSqlSafe(begin)).execute(&mut *self.connection).await?;
        while savepoint::depth::<Sqlite>(self.connection) >= level {
            Manager::rollback(self.connection).await?;
        }
        Ok(())
    }
}

/// Begins a transaction with a reference to nothing, which is looked for at the commit.
const UNFINISHED: &str = "
    BEGIN;
    CREATE TEMP TABLE _idem_transaction_lost
        (id INTEGER PRIMARY KEY, lost REFERENCES _idem_transaction_lost DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO _idem_transaction_lost VALUES (1, 2)";

impl Transaction for SqliteTransaction<'_> {
    fn is_open(&self) -> bool {
        savepoint::is_open::<Sqlite>(self.connection, self.savepoint)
    }

    fn begin(&mut self) -> Step<'_, ()> {
        Box::pin(self.open())
    }

    fn release(&mut self) -> Step<'_, ()> {
        Box::pin(self.release())
    }

    fn roll_back(&mut self) -> Step<'_, ()> {
        Box::pin(self.undo())
    }

    fn insert<'a>(&'a mut self, insert: &'a Insert, _: Duration) -> Step<'a, Answer> {
        Box::pin(self.insert(insert))
    }

    fn replace<'a>(&'a mut self, replacement: &'a Replace, _: Duration) -> Step<'a, Answer> {
        Box::pin(self.replace(replacement))
    }

    fn finish<'a>(&'a mut self, finish: &'a Finish) -> Step<'a, Answer> {
        Box::pin(self.finish(finish))
    }

    fn stands<'a>(&'a mut self, job: &'a Renew) -> Step<'a, bool> {
        Box::pin(self.stands(job))
    }

    fn read<'a>(&'a mut self, key: &'a str) -> Step<'a, Option<Record>> {
        Box::pin(self.read(key))
    }
}

/// How long a dropped job waits for what its connection still does.
const SETTLING: Duration = Duration::from_millis(100);

/// Has the savepoint undone before anything else is done, unless sqlx has undone it: it does so where one inside of it
/// is dropped before it is begun, and another rollback would be that of the caller's own transaction.
pub(super) fn abandon(connection: &mut SqliteConnection, savepoint: &Savepoint) {
    let Some(level) = savepoint.level else { return };
    if savepoint.is_ending {
        // That may have come to its end unheard of, and then sqlx passes over one rollback: over this one.
        return Manager::start_rollback(connection);
    }
    // The connection counts on a thread of its own. What it has still to do is hardly ever more than one statement.
    block_on_for(SETTLING, connection.ping());
    if Manager::get_transaction_depth(connection) >= level {
        Manager::start_rollback(connection);
    }
}

/// What an error means for the transaction that it came up in.
fn halt(context: &'static str, error: sqlx::Error) -> Halt {
    match Fault::of::<Sqlite>(&error) {
        Fault::Collision | Fault::Busy | Fault::Locked => Halt::Conflict(error.into()),
        Fault::Connection => Halt::Lost(error.into()),
        Fault::Refused => Halt::Refused(explain::<Sqlite>(context, error)),
    }
}
