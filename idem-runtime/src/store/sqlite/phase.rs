//! Phases: rows that are written under the claim of their job, and lie behind it in the order of keys.

use sqlx::{Connection, Row, SqliteConnection, sqlite::SqliteRow};

use super::{BEGIN, READING, SqliteStore, insert_statement, read_record, replace_statement};
use crate::{
    record::{Record, Status},
    store::{
        Answer, PhaseDeed, PhaseWrite, StoreError,
        sql::{Batch, NewRowParams, Outcome, bind_claim},
    },
};

const WRITING: &str = "writing phases";

impl SqliteStore {
    /// One transaction for the batch: there is one writer, and so nobody comes between the job's row and the phase's.
    pub(super) async fn phase_all(&self, items: &[PhaseWrite]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |write| write.key());
        if batch.is_done() {
            return batch.finish(WRITING);
        }
        let mut held = self.writer(WRITING).await?;
        let done = async {
            let mut transaction = held.connection().begin_with(BEGIN).await?;
            let mut outcomes = Vec::with_capacity(items.len());
            for write in batch.open() {
                outcomes.push((write, self.write_phase(&mut transaction, write).await?));
            }
            transaction.commit().await?;
            Ok(outcomes)
        };
        let done = done.await;
        for (write, outcome) in held.settle(WRITING, done)? {
            let answer = outcome.answer(write, read_record)?;
            batch.answer(write.key(), |_| answer);
        }
        batch.finish(WRITING)
    }

    async fn write_phase(
        &self,
        transaction: &mut SqliteConnection,
        write: &PhaseWrite,
    ) -> Result<Outcome<SqliteRow>, sqlx::Error> {
        let ends = write.status() != Status::Processing;
        let stands = bind_claim(sqlx::query(&self.statements.stands), &write.job, ends);
        let Some(job) = stands.fetch_all(&mut *transaction).await?.pop() else {
            return Ok(Outcome::Superseded);
        };
        let birth: String = job.try_get(0)?;
        let row = |key, row| NewRowParams { fingerprint: Some(birth.into()), ..NewRowParams::of(key, row) };
        let statement = match &write.deed {
            PhaseDeed::Insert(insert) => {
                let row = row(&insert.key, &insert.row);
                insert_statement(&self.statements.phase_insert, row).bind(write.job.fence)
            }
            PhaseDeed::Replace(replace) => {
                let row = row(&replace.key, &replace.row);
                replace_statement(&self.statements.phase_replace, replace, row).bind(write.job.fence)
            }
            PhaseDeed::Finish(finish) => self.finish_statement(finish),
        };
        let Some(written) = statement.fetch_all(&mut *transaction).await?.pop() else {
            let read = sqlx::query(&self.statements.read_one).bind(write.key().to_string());
            return Ok(Outcome::Unwritten(read.fetch_all(&mut *transaction).await?));
        };
        if let PhaseDeed::Replace(replace) = &write.deed
            && let Some(audit) = &replace.audit
        {
            self.audit_statement(&replace.key, audit).execute(&mut *transaction).await?;
        }
        Ok(Outcome::Written(written.try_get("fence")?))
    }

    pub(super) async fn range(
        &self,
        after: &str,
        before: &str,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let between = sqlx::query(&self.statements.between);
        let between = between.bind(after.to_owned()).bind(before.to_owned()).bind(limit);
        self.read_rows(READING, between).await?.iter().map(read_record).collect()
    }
}
