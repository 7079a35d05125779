//! Turning stale claims over to a person, and telling them: at least once for each claim, and once while nobody dies.

use std::{sync::Arc, time::Duration};

use crate::{
    alert::{Alert, AlertKind, Hook},
    block_on::block_on,
    key::Key,
    metrics,
    point::{Point, reached},
    progress::with_phases,
    record::{Record, Status},
    service::{Failure, Patience, Service},
    store::{Answer, Audit, Moment, NewRow, Replace},
};

/// How often the note that a person was told looks again at a row whose holder goes on heartbeating.
const LOOKS: usize = 16;

/// Who turns claims over, and whom they tell.
#[derive(Debug, Clone)]
pub(crate) struct Reviewer {
    pub(crate) service: Service,
    pub(crate) hook: Hook,
    /// What the audit table calls this process.
    pub(crate) worker: String,
}

impl Reviewer {
    /// Turns a stale claim, as it was seen, into one that needs review, and, if it was this write that did it, has a
    /// person told. It is on its way from the first poll on.
    pub(crate) async fn flag(
        &self,
        key: &Key,
        record: &Record,
        patience: Patience,
    ) -> Result<Answer, Failure> {
        let (reviewer, key, record) = (self.clone(), key.clone(), record.clone());
        let flagging = self.service.complete(async move {
            let record = reviewer.with_phases(&key, record).await;
            let answer = reviewer.turn_over(&record, patience).await?;
            if let Answer::Written { .. } = answer {
                reviewer.tell([turned_over(record)]);
            }
            Ok(answer)
        });
        flagging.await?
    }

    /// The row of a claim with those of its phases, which tell the person who decides where it stopped. A row of which
    /// they cannot be read is turned over all the same.
    pub(crate) async fn with_phases(&self, key: &Key, record: Record) -> Record {
        with_phases(&self.service, key, record.clone()).await.unwrap_or(record)
    }

    /// Turns a stale claim, as it was seen, into one that needs review. Whoever's write it is that does it is the one
    /// to tell a person.
    pub(crate) async fn turn_over(&self, record: &Record, patience: Patience) -> Result<Answer, Failure> {
        let over = turned_over(record.clone());
        let audit = Audit {
            actor: self.worker.clone(),
            from_status: record.status.to_string(),
            to_status: over.status.to_string(),
            note: over.evidence(),
            old_result: None,
        };
        let flag = reviewed(&over, Moment::Never);
        let flag = Replace { expected: record.version(), audit: Some(audit), ..flag };
        let answer = self.service.replace(flag, None, patience).await?;
        if let Answer::Written { .. } = answer {
            metrics::turned_over();
            reached(Point::Flagged);
        }
        Ok(answer)
    }

    /// Says that this process tells a person of a row, or still does: nobody else begins to meanwhile. Answers the row
    /// as it then is, if it was the one that was seen.
    ///
    /// It makes it another version of the row: of all who saw the old one, one wins, and the others' patience begins
    /// anew.
    pub(crate) async fn claim_telling(
        &self,
        record: &Record,
        patience: Patience,
    ) -> Result<Option<Record>, Failure> {
        let touch = touched(record, Moment::Never);
        let answer = self.service.replace(touch, None, patience).await?;
        let won = matches!(answer, Answer::Written { .. });
        Ok(won.then(|| Record {
            lease_until: Some(a_moment_later(record.lease_until, record)),
            ..record.clone()
        }))
    }

    /// Has a person told of rows that need review, as one, and each row say that they were.
    pub(crate) fn tell(&self, records: impl IntoIterator<Item = Record>) {
        if self.service.check_alive().is_err() {
            return;
        }
        self.hook.call(records.into_iter().map(|record| {
            let alert = Alert::of(AlertKind::NeedsReview, &record);
            let service = self.service.clone();
            let told = move || {
                reached(Point::Told);
                if let Err(failure) = block_on(note_told(&service, record)) {
                    tracing::warn!(?failure, "the alert was raised, and that could not be recorded");
                }
            };
            (alert, Box::new(told) as Box<dyn FnOnce() + Send>)
        }));
    }
}

/// A claim as it stands once it was turned over. The lease of a phase may still run then: who holds the job knows that
/// nobody is in there, and a person need not wait for its end.
pub(crate) fn turned_over(record: Record) -> Record {
    let lease_until = record.lease_until.map(|end| end.min(record.now));
    Record { status: Status::NeedsReview, alerted_at: None, lease_until, ..record }
}

/// Notes that a person was told, for as long as the row is the one that they were told of. A holder that is alive after
/// all renews its lease meanwhile.
async fn note_told(service: &Service, mut record: Record) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        let told = touched(&record, Moment::In(Duration::ZERO));
        let found = match service.replace(told, None, service.patience(None)).await? {
            Answer::Found(found) => found,
            Answer::Written { .. } | Answer::Gone => return Ok(()),
        };
        let is_same = found.owner == record.owner && found.fence == record.fence;
        if !is_same || found.status != Status::NeedsReview || found.alerted_at.is_some() {
            return Ok(());
        }
        record = *found;
    }
    Ok(())
}

/// A row that needs review, as another version of it.
fn touched(record: &Record, alerted: Moment) -> Replace {
    let mut touched = reviewed(record, alerted);
    touched.row.lease = Moment::At(a_moment_later(record.lease_until, record));
    touched
}

/// A microsecond more on a lease changes nothing but the version of its row.
pub(crate) fn a_moment_later(lease_until: Option<i64>, record: &Record) -> i64 {
    lease_until.unwrap_or(record.created_at).saturating_add(1)
}

/// A row as one that needs review.
fn reviewed(record: &Record, alerted: Moment) -> Replace {
    Replace {
        key: Arc::from(record.key.as_str()),
        expected: record.version(),
        row: NewRow { alerted, ..NewRow::with_history(record, Status::NeedsReview) },
        raise_fence: false,
        renew_birth: false,
        audit: None,
    }
}
