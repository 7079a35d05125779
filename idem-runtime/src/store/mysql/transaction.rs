//! The table inside a caller's transaction, in the words of MySQL and MariaDB.

use std::{slice, time::Duration};

use sqlx::{
    AssertSqlSafe, MySql, MySqlConnection, Row,
    mysql::{MySqlQueryResult, MySqlRow},
    raw_sql,
};
use sqlx_core::{database::Database, transaction::TransactionManager};

use super::{
    CLAIMING, FINISHING, MySqlStore, READING, RENEWING, REPLACING, is_duplicate,
    server::Server,
    statements::{Statements, fence_told},
    whole,
};
use crate::{
    record::Record,
    store::{
        Answer, Finish, Insert, Renew, Replace,
        sql::{ATTEMPTS, Batch, Cells, Fault, Sql, explain, record, restless, savepoint, unreplaced},
        transaction::{BRIEF, Halt, Savepoint, Step, Transaction},
    },
};

/// The most seconds that both servers can be told to wait for a lock.
const LONGEST_WAIT: u64 = 100_000_000;

/// A caller's transaction on MySQL or MariaDB.
pub(super) struct MySqlTransaction<'a> {
    pub(super) store: &'a MySqlStore,
    pub(super) connection: &'a mut MySqlConnection,
    pub(super) savepoint: &'a mut Savepoint,
}

impl<'a> MySqlTransaction<'a> {
    fn server(&self) -> Server {
        self.store.server.get().copied().unwrap_or(Server::MySql)
    }

    fn statements(&self) -> &'a Statements {
        self.store.statements(self.server())
    }

    async fn rows(&mut self, context: &'static str, statement: &Sql) -> Result<Vec<MySqlRow>, Halt> {
        raw_sql(statement).fetch_all(&mut *self.connection).await.map_err(|error| halt(context, error))
    }

    async fn execute(&mut self, context: &'static str, statement: &Sql) -> Result<MySqlQueryResult, Halt> {
        raw_sql(statement).execute(&mut *self.connection).await.map_err(|error| halt(context, error))
    }

    async fn open(&mut self) -> Result<(), Halt> {
        if savepoint::depth::<MySql>(self.connection) == 0 {
            return Err(Halt::Outside);
        }
        savepoint::open::<MySql>(self.connection, self.savepoint, savepoint::lost).await
    }

    /// Keeps what was done: the savepoint is made anew behind it. If a release were dropped half way, sqlx would go back
    /// to a savepoint that is released.
    async fn release(&mut self) -> Result<(), Halt> {
        let Some(level) = self.savepoint.level else { return Ok(()) };
        if savepoint::depth::<MySql>(self.connection) != level {
            return Err(savepoint::left_open());
        }
        let name = format!("_sqlx_savepoint_{}", level.saturating_sub(1));
        let renewal = format!("RELEASE SAVEPOINT {name}; SAVEPOINT {name}");
        let renewed = raw_sql(AssertSqlSafe(renewal)).execute(&mut *self.connection).await;
        renewed.map_err(savepoint::lost)?;
        abandon(self.connection, self.savepoint);
        *self.savepoint = Savepoint::default();
        Ok(())
    }

    /// Carries a statement out that may wait so long for a lock, and tells how many rows it met and the id that it
    /// answers with.
    async fn write(
        &mut self,
        context: &'static str,
        wait: Duration,
        statement: impl FnOnce(u64) -> Sql,
    ) -> Result<(u64, u64), Halt> {
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).min(LONGEST_WAIT);
        let armed = self.arm(seconds).await?;
        let done = self.execute(context, &statement(seconds)).await;
        if armed && !matches!(done, Err(Halt::Lost(_))) {
            self.disarm().await?;
        }
        done.map(|done| (done.rows_affected(), done.last_insert_id()))
    }

    /// A statement of MySQL cannot say by itself how long it waits: the session says it, and its own limit is put back.
    async fn arm(&mut self, seconds: u64) -> Result<bool, Halt> {
        if self.server() == Server::MariaDb {
            return Ok(false);
        }
        let asked = raw_sql("SELECT CAST(@@SESSION.innodb_lock_wait_timeout AS CHAR)");
        let asked = asked.fetch_one(&mut *self.connection).await;
        let setting = asked.and_then(|row| row.try_get(0)).map_err(|error| halt(READING, error))?;
        self.savepoint.setting = Some(setting);
        self.set_limit(&seconds.max(1).to_string()).await?;
        Ok(true)
    }

    async fn disarm(&mut self) -> Result<(), Halt> {
        match self.savepoint.setting.take().and_then(|setting| setting.parse::<u64>().ok()) {
            Some(seconds) => self.set_limit(&seconds.to_string()).await,
            None => Ok(()),
        }
    }

    async fn set_limit(&mut self, seconds: &str) -> Result<(), Halt> {
        let set = format!("SET SESSION innodb_lock_wait_timeout = {seconds}");
        let set = raw_sql(AssertSqlSafe(set)).execute(&mut *self.connection).await;
        set.map(drop).map_err(|error| halt(READING, error))
    }

    /// A row as it was committed last, or as this transaction has left it. A plain read would see it as it was when
    /// the transaction began to read.
    async fn latest(&mut self, key: &str) -> Result<Option<(Record, i64)>, Halt> {
        let latest = whole::of_key(self.statements().read_latest.as_str(), key);
        found(&self.rows(READING, &latest).await?)
    }

    async fn read(&mut self, key: &str) -> Result<Option<Record>, Halt> {
        let read = whole::of_key(self.statements().read_one.as_str(), key);
        Ok(found(&self.rows(READING, &read).await?)?.map(|(record, _)| record))
    }

    async fn stands(&mut self, job: &Renew) -> Result<bool, Halt> {
        let sql = self.statements();
        let waiting = |seconds| whole::stands(&sql.stands_waiting.lasting(seconds), job);
        Ok(self.write(RENEWING, BRIEF, waiting).await?.0 > 0)
    }

    async fn insert(&mut self, insert: &Insert, wait: Duration) -> Result<Answer, Halt> {
        let sql = self.statements();
        let mut floor = 0;
        for _ in 0..ATTEMPTS {
            let waiting = |seconds| whole::insert(&sql.insert_waiting.lasting(seconds), insert, floor);
            match self.write(CLAIMING, wait, waiting).await {
                // It came in while this one waited.
                Err(Halt::Refused(error)) if is_duplicate(&error) => {}
                written => drop(written?),
            }
            let Some((record, lowest)) = self.latest(&insert.key).await? else { continue };
            floor = floor.max(lowest);
            if !insert.made(&record) {
                return Ok(Answer::Found(Box::new(record)));
            }
            if record.fence > floor {
                return Ok(Answer::Written { fence: record.fence });
            }
            let lift = whole::lift(sql.lift.as_str(), insert, record.fence, floor);
            self.execute(CLAIMING, &lift).await?;
        }
        Err(Halt::Conflict(restless(CLAIMING).source))
    }

    async fn replace(&mut self, replace: &Replace, wait: Duration) -> Result<Answer, Halt> {
        let sql = self.statements();
        for _ in 0..ATTEMPTS {
            let waiting = |seconds| whole::replace(&sql.replacing_waiting(replace).lasting(seconds), replace);
            let (met, id) = self.write(REPLACING, wait, waiting).await?;
            if met > 0
                && let Some(fence) = fence_told(replace, id)
            {
                return Ok(Answer::Written { fence });
            }
            let found = self.latest(&replace.key).await?.map(|(record, _)| record);
            if let Some(answer) = unreplaced(replace, found) {
                return Ok(answer);
            }
        }
        Err(Halt::Conflict(restless(REPLACING).source))
    }

    async fn finish(&mut self, finish: &Finish) -> Result<Answer, Halt> {
        let statement = whole::finish(self.statements().finish_one.as_str(), finish);
        let done = self.execute(FINISHING, &statement).await?;
        let mut batch = Batch::of(slice::from_ref(finish), |finish| &finish.key);
        if done.rows_affected() > 0 {
            batch.answer_rest(|finish| Some(Answer::Written { fence: finish.fence_after() }));
        } else {
            batch.answer_unfinished(self.read(&finish.key).await?.into_iter().collect());
        }
        savepoint::one(batch.finish(FINISHING), FINISHING)
    }
}

/// The row that a look gives, with the floor of the fences.
fn found(rows: &[MySqlRow]) -> Result<Option<(Record, i64)>, Halt> {
    let read = |row: &MySqlRow| {
        let mut cells = Cells::of(row);
        let key = cells.next()?;
        let floor = cells.next()?;
        Ok((record(&mut cells, key)?, floor))
    };
    rows.first().map(read).transpose().map_err(Halt::Refused)
}

impl Transaction for MySqlTransaction<'_> {
    fn is_open(&self) -> bool {
        savepoint::is_open::<MySql>(self.connection, self.savepoint)
    }

    /// A plain read in the transaction itself is no way around that: there it may see what is not committed, wait for
    /// as long as the session does, or lock where the key would be against the one who is about to insert it.
    fn locks_what_it_meets(&self) -> bool {
        true
    }

    fn begin(&mut self) -> Step<'_, ()> {
        Box::pin(self.open())
    }

    fn release(&mut self) -> Step<'_, ()> {
        Box::pin(self.release())
    }

    fn roll_back(&mut self) -> Step<'_, ()> {
        Box::pin(savepoint::roll_back::<MySql>(self.connection, self.savepoint))
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

type Manager = <MySql as Database>::TransactionManager;

/// Has the savepoint undone before anything else is done, unless sqlx has undone it.
pub(super) fn abandon(connection: &mut MySqlConnection, savepoint: &Savepoint) {
    while savepoint::is_open::<MySql>(connection, savepoint) {
        Manager::start_rollback(connection);
    }
}

/// What an error means for the transaction that it came up in.
fn halt(context: &'static str, error: sqlx::Error) -> Halt {
    let number = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>())
        .map(sqlx::mysql::MySqlDatabaseError::number);
    match (Fault::of::<MySql>(&error), number) {
        // A deadlock, or a commit that a cluster refused: the server has rolled the whole transaction back.
        (_, Some(1213 | 3101)) => Halt::Lost(error.into()),
        // The first three: it only reads; the connection is sound.
        (_, Some(1290 | 1792 | 1836)) | (Fault::Refused, _) => {
            Halt::Refused(explain::<MySql>(context, error))
        }
        (Fault::Locked, _) => Halt::Locked,
        (Fault::Collision | Fault::Busy, _) => Halt::Conflict(error.into()),
        (Fault::Connection, _) => Halt::Lost(error.into()),
    }
}
