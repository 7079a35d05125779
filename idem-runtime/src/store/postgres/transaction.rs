//! The table inside a caller's transaction, in Postgres's words.

use std::{slice, time::Duration};

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, Postgres, Row, error::DatabaseError, postgres::PgRow, query,
    raw_sql,
};
use sqlx_core::{database::Database, transaction::TransactionManager};

use super::{CLAIMING, FINISHING, PostgresStore, READING, RENEWING, REPLACING, Statement, let_go::LetGo};
use crate::{
    record::Record,
    store::{
        Answer, Finish, Insert, Renew, Replace,
        sql::{ATTEMPTS, Batch, Cells, Fault, bind_claim, explain, record, restless, savepoint, unreplaced},
        transaction::{BRIEF, Halt, Savepoint, Step, Transaction},
    },
};

/// A caller's transaction on Postgres.
pub(super) struct PostgresTransaction<'a> {
    pub(super) store: &'a PostgresStore,
    pub(super) connection: &'a mut PgConnection,
    pub(super) savepoint: &'a mut Savepoint,
}

impl PostgresTransaction<'_> {
    /// Asks for the caller's limit of waits for locks. This is the first that is sent: it fails where the transaction
    /// has failed already, and then no savepoint may be tried.
    async fn open(&mut self) -> Result<(), Halt> {
        if savepoint::depth::<Postgres>(self.connection) == 0 {
            return Err(Halt::Outside);
        }
        let asked = self.kept(query("SELECT current_setting('lock_timeout')"));
        let row = asked.fetch_one(&mut *self.connection).await;
        let setting = row.and_then(|row| row.try_get(0)).map_err(|error| halt(READING, error))?;
        self.savepoint.setting = Some(setting);
        LetGo::of(savepoint::open::<Postgres>(self.connection, self.savepoint, savepoint::lost)).await?;
        // One more, for the body: where a transaction inside of it is not begun to the end, sqlx goes back two levels,
        // and one of them would be the caller's own transaction.
        LetGo::of(Manager::begin(self.connection, None)).await.map_err(savepoint::lost)
    }

    /// Keeps what was done: the savepoints are made anew behind it.
    async fn release(&mut self) -> Result<(), Halt> {
        let Some(level) = self.savepoint.level else { return Ok(()) };
        if savepoint::depth::<Postgres>(self.connection) != level + 1 {
            return Err(savepoint::left_open());
        }
        let (outer, inner) = (name(level), name(level + 1));
        self.end(format!("RELEASE SAVEPOINT {outer}; SAVEPOINT {outer}; SAVEPOINT {inner}")).await
    }

    async fn undo(&mut self) -> Result<(), Halt> {
        let open =
            self.savepoint.level.filter(|_| savepoint::is_open::<Postgres>(self.connection, self.savepoint));
        let Some(level) = open else {
            *self.savepoint = Savepoint::default();
            return Ok(());
        };
        let (outer, inner) = (name(level), name(level + 1));
        self.end(format!("ROLLBACK TO SAVEPOINT {outer}; SAVEPOINT {inner}")).await
    }

    /// Has sqlx go back to savepoints with nothing behind them, in place of releasing them: if that were dropped half
    /// way, sqlx would go back to savepoints that are released, and the whole transaction would fail.
    async fn end(&mut self, renewal: String) -> Result<(), Halt> {
        let execute = raw_sql(AssertSqlSafe(renewal)).execute(&mut *self.connection);
        execute.await.map_err(savepoint::lost)?;
        let Some(level) = self.savepoint.level else { return Ok(()) };
        abandon(self.connection, self.savepoint);
        *self.savepoint = Savepoint::default();
        // Those of a long transaction would pile up.
        let release = format!("RELEASE SAVEPOINT {}", name(level));
        raw_sql(AssertSqlSafe(release))
            .execute(&mut *self.connection)
            .await
            .map(drop)
            .map_err(savepoint::lost)
    }

    async fn run(&mut self, context: &'static str, statement: Statement) -> Result<Vec<PgRow>, Halt> {
        let statement = self.kept(statement);
        statement.fetch_all(&mut *self.connection).await.map_err(|error| halt(context, error))
    }

    /// A statement that is kept prepared where the caller's own are. Where a pooler stands between, callers keep none:
    /// those of one transaction would be in the way of another's.
    fn kept(&self, statement: Statement) -> Statement {
        let keeps = self.connection.cached_statements_size() > 0 && !self.store.pooler.is_there();
        statement.persistent(keeps)
    }

    /// Puts the caller's limit of waits back. Where the step failed, the rollback to the savepoint does that.
    async fn restore(&mut self) -> Result<(), Halt> {
        let restore =
            query("SELECT set_config('lock_timeout', $1, true)").bind(self.savepoint.setting.clone());
        self.run(READING, restore).await.map(drop)
    }

    async fn insert(&mut self, insert: &Insert, wait: Duration) -> Result<Answer, Halt> {
        let mut batch = Batch::of(slice::from_ref(insert), |insert| &insert.key);
        for _ in 0..ATTEMPTS {
            let statement = super::insert_statement(&self.store.statements().insert_waiting, insert);
            let rows = self.run(CLAIMING, statement.bind(limit(wait))).await?;
            super::answer_claims(&mut batch, &rows).map_err(Halt::Refused)?;
            if batch.is_done() {
                break;
            }
        }
        self.restore().await?;
        savepoint::one(batch.finish(CLAIMING), CLAIMING)
    }

    async fn replace(&mut self, replace: &Replace, wait: Duration) -> Result<Answer, Halt> {
        for _ in 0..ATTEMPTS {
            let statement = super::replace_statement(&self.store.statements().replace_waiting, replace);
            let rows = self.run(REPLACING, statement.bind(limit(wait))).await?;
            self.restore().await?;
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
        let statement = super::finish_statement(&self.store.statements().finish_own, finish);
        let mut batch = Batch::of(slice::from_ref(finish), |finish| &finish.key);
        let rows = self.run(FINISHING, statement).await?;
        batch.answer_written(&rows).map_err(Halt::Refused)?;
        if !batch.is_done() {
            batch.answer_unfinished(self.read(&finish.key).await?.into_iter().collect());
        }
        savepoint::one(batch.finish(FINISHING), FINISHING)
    }

    async fn stands(&mut self, job: &Renew) -> Result<bool, Halt> {
        let stands = bind_claim(query(&self.store.statements().stands), job, false);
        let rows = self.run(RENEWING, stands.bind(limit(BRIEF))).await?;
        self.restore().await?;
        Ok(!rows.is_empty())
    }

    async fn read(&mut self, key: &str) -> Result<Option<Record>, Halt> {
        let rows = self.run(READING, query(&self.store.statements().read_one).bind(key.to_owned())).await?;
        let read = |row: &PgRow| {
            let mut cells = Cells::of(row);
            let key = cells.next()?;
            record(&mut cells, key)
        };
        rows.first().map(read).transpose().map_err(Halt::Refused)
    }
}

impl Transaction for PostgresTransaction<'_> {
    fn is_open(&self) -> bool {
        savepoint::is_open::<Postgres>(self.connection, self.savepoint)
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

    fn insert<'a>(&'a mut self, insert: &'a Insert, wait: Duration) -> Step<'a, Answer> {
        Box::pin(self.insert(insert, wait))
    }

    fn replace<'a>(&'a mut self, replacement: &'a Replace, wait: Duration) -> Step<'a, Answer> {
        Box::pin(self.replace(replacement, wait))
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

type Manager = <Postgres as Database>::TransactionManager;

/// Has the savepoint undone before anything else is done, unless sqlx has undone it.
pub(super) fn abandon(connection: &mut PgConnection, savepoint: &Savepoint) {
    while savepoint::is_open::<Postgres>(connection, savepoint) {
        Manager::start_rollback(connection);
    }
}

/// What sqlx calls the savepoint of a level.
fn name(level: usize) -> String {
    format!("_sqlx_savepoint_{}", level.saturating_sub(1))
}

/// A wait as a setting. Zero would switch the limit off.
fn limit(wait: Duration) -> String {
    format!("{}ms", wait.as_millis().clamp(1, i32::MAX as u128))
}

/// What an error means for the transaction that it came up in.
fn halt(context: &'static str, error: sqlx::Error) -> Halt {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match (Fault::of::<Postgres>(&error), code.as_deref()) {
        // in_failed_sql_transaction
        (_, Some("25P02")) => Halt::Aborted(error.into()),
        // no_active_sql_transaction, invalid_savepoint_specification
        (_, Some("25P01" | "3B001")) => Halt::Lost(error.into()),
        // read_only_sql_transaction, and what a statement cache may meet: the connection is sound.
        (_, Some("25006" | "26000" | "42P05" | "0A000")) => {
            Halt::Refused(explain::<Postgres>(context, error))
        }
        (Fault::Locked, _) => Halt::Locked,
        (Fault::Collision | Fault::Busy, _) => Halt::Conflict(error.into()),
        (Fault::Connection, _) => Halt::Lost(error.into()),
        (Fault::Refused, _) => Halt::Refused(explain::<Postgres>(context, error)),
    }
}
