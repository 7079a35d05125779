//! Phases: rows that are written under the claim of their job, and lie behind it in the order of keys.

use sqlx::{Connection, MySqlConnection, Row, mysql::MySqlRow};

use super::{
    MySqlStore, READING, audit_statement, bind_rest, end, finish_statement, insert_row, probe,
    retry::{Retry, fault},
    statements::Statements,
};
use crate::{
    record::{Record, Status},
    store::{
        Answer, NewRow, PhaseDeed, PhaseWrite, StoreError,
        sql::{ATTEMPTS, Batch, Cells, NewRowParams, Outcome, RenewParams, bind_row, record},
    },
};

const WRITING: &str = "writing phases";

impl MySqlStore {
    pub(super) async fn phase_all(&self, items: &[PhaseWrite]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |write| write.key());
        for _ in 0..ATTEMPTS {
            let open: Vec<_> = batch.open().collect();
            if open.is_empty() {
                break;
            }
            for (write, outcome) in open.iter().zip(self.write_phases(&open).await?) {
                let answer = outcome.answer(write, read_record)?;
                batch.answer(write.key(), |_| answer);
            }
        }
        batch.finish(WRITING)
    }

    async fn write_phases(&self, open: &[&PhaseWrite]) -> Result<Vec<Outcome<MySqlRow>>, StoreError> {
        let keys: Vec<_> = open.iter().flat_map(|write| [&*write.job.key, &**write.key()]).collect();
        let mut retry = Retry::default();
        loop {
            let (mut held, server) = self.take(WRITING).await?;
            let sql = self.statements(server);
            let done = match probe(held.connection(), sql, server, &keys).await {
                Ok(()) => write_all(held.connection(), sql, open).await,
                Err(error) => Err(error),
            };
            let fault = fault(&done);
            let done = held.settle(WRITING, done);
            if !retry.after(fault).await {
                return done;
            }
        }
    }

    pub(super) async fn range(
        &self,
        after: &str,
        before: &str,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let between = |sql: &Statements| {
            sqlx::query(&sql.between).bind(after.to_owned()).bind(before.to_owned()).bind(limit)
        };
        self.rows(READING, between).await?.iter().map(read_record).collect()
    }
}

/// One transaction for the batch. The job's row comes first, and is locked from then on: all who write its phases take
/// turns.
async fn write_all(
    connection: &mut MySqlConnection,
    sql: &Statements,
    open: &[&PhaseWrite],
) -> Result<Vec<Outcome<MySqlRow>>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let outcomes = write_each(&mut transaction, sql, open).await;
    end(transaction, outcomes).await
}

async fn write_each(
    connection: &mut MySqlConnection,
    sql: &Statements,
    open: &[&PhaseWrite],
) -> Result<Vec<Outcome<MySqlRow>>, sqlx::Error> {
    let mut outcomes = Vec::with_capacity(open.len());
    for write in open {
        outcomes.push(write_one(connection, sql, write).await?);
    }
    Ok(outcomes)
}

async fn write_one(
    connection: &mut MySqlConnection,
    sql: &Statements,
    write: &PhaseWrite,
) -> Result<Outcome<MySqlRow>, sqlx::Error> {
    let job = RenewParams::of(&write.job);
    let stands = sqlx::query(&sql.stands).bind(job.lease).bind(job.key).bind(job.owner).bind(job.fence);
    let stands = stands.bind(write.status() != Status::Processing);
    if stands.execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(Outcome::Superseded);
    }
    let (statement, fence) = match &write.deed {
        PhaseDeed::Finish(finish) => (finish_statement(&sql.finish_one, finish), finish.fence_after()),
        PhaseDeed::Insert(insert) => {
            let row = row_of(connection, sql, job.key, &insert.key, &insert.row).await?;
            (insert_row(&sql.phase_insert, insert, row, job.fence), job.fence)
        }
        PhaseDeed::Replace(replace) => {
            let row = row_of(connection, sql, job.key, &replace.key, &replace.row).await?;
            let statement = bind_row(sqlx::query(sql.replacing_phase(replace)), row).bind(job.fence);
            (bind_rest(statement, replace), job.fence.max(replace.expected.fence))
        }
    };
    let written = match statement.execute(&mut *connection).await {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => 0,
        written => written?.rows_affected(),
    };
    if written == 0 {
        let read = sqlx::query(&sql.read_one).bind(write.key().to_string());
        return Ok(Outcome::Unwritten(read.fetch_all(&mut *connection).await?));
    }
    if let PhaseDeed::Replace(replace) = &write.deed
        && let Some(audit) = &replace.audit
    {
        audit_statement(sql, &replace.key, audit).execute(&mut *connection).await?;
    }
    Ok(Outcome::Written(fence))
}

/// A phase's row, with the birth of its job's row, which is locked.
async fn row_of<'a>(
    connection: &mut MySqlConnection,
    sql: &Statements,
    job: &str,
    key: &'a str,
    row: &'a NewRow,
) -> Result<NewRowParams<'a>, sqlx::Error> {
    let birth: String =
        sqlx::query(&sql.birth).bind(job.to_owned()).fetch_one(connection).await?.try_get(0)?;
    Ok(NewRowParams { fingerprint: Some(birth.into()), ..NewRowParams::of(key, row) })
}

fn read_record(row: &MySqlRow) -> Result<Record, StoreError> {
    let mut cells = Cells::of(row);
    let key = cells.next()?;
    let _floor: i64 = cells.next()?;
    record(&mut cells, key)
}
