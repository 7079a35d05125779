//! Phases: rows that are written under the claim of their job, and lie behind it in the order of keys.

use sqlx::postgres::PgRow;

use super::{
    PostgresStore, READING, Statement, finish_statement, insert_statement, read_record, replace_statement,
};
use crate::{
    record::{Record, Status},
    store::{
        Answer, PhaseDeed, PhaseWrite, StoreError,
        sql::{ATTEMPTS, Batch, Cells, bind_audit, bind_claim, record, unwritten},
    },
};

const WRITING: &str = "writing phases";

impl PostgresStore {
    /// Each write is one statement, and a batch of one is that and nothing else. Several are one transaction.
    pub(super) async fn phase_all(&self, items: &[PhaseWrite]) -> Result<Vec<Answer>, StoreError> {
        let mut batch = Batch::of(items, |write| write.key());
        for _ in 0..ATTEMPTS {
            let open: Vec<_> = batch.open().collect();
            if open.is_empty() {
                break;
            }
            let statements = || open.iter().map(|write| self.phase_statement(write)).collect();
            let rows = self.run_together(WRITING, statements).await?;
            for (write, rows) in open.iter().zip(rows) {
                let answer = answer(write, &rows)?;
                batch.answer(write.key(), |_| answer);
            }
        }
        batch.finish(WRITING)
    }

    pub(super) async fn range(
        &self,
        after: &str,
        before: &str,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let between = || {
            let between = sqlx::query(&self.statements().between);
            between.bind(after.to_owned()).bind(before.to_owned()).bind(i64::from(limit))
        };
        self.run(READING, between).await?.iter().map(read_record).collect()
    }

    fn phase_statement(&self, write: &PhaseWrite) -> Statement {
        let statements = self.statements();
        let statement = match &write.deed {
            PhaseDeed::Insert(insert) => insert_statement(&statements.phase_insert, insert),
            PhaseDeed::Finish(finish) => finish_statement(&statements.phase_finish, finish),
            PhaseDeed::Replace(replace) => match &replace.audit {
                None => replace_statement(&statements.phase_replace, replace),
                Some(audit) => {
                    bind_audit(replace_statement(&statements.phase_replace_audited, replace), audit)
                }
            },
        };
        bind_claim(statement, &write.job, write.status() != Status::Processing)
    }
}

/// What the rows of a phase's write say; nothing where it is to be tried again.
fn answer(write: &PhaseWrite, rows: &[PgRow]) -> Result<Option<Answer>, StoreError> {
    let Some(row) = rows.first() else { return Ok(Some(Answer::Gone)) };
    if let Some(fence) = Cells::of(row).next()? {
        return Ok(Some(Answer::Written { fence }));
    }
    let found = rows.get(1).map(|row| {
        let mut cells = Cells::of(row);
        let _fence: Option<i64> = cells.next()?;
        let key = cells.next()?;
        record(&mut cells, key)
    });
    Ok(unwritten(write, found.transpose()?))
}
