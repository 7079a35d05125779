//! Turning stale claims over to a person, and telling them: at least once for each claim, and once while nobody dies.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    alert::{Alert, Hook},
    block_on::block_on,
    point::{Point, reached},
    record::{Record, Status},
    service::{Failure, Patience, Service},
    store::{Answer, Moment, NewRow, Replace},
};

/// How often the note that a person was told looks again at a row whose holder goes on heartbeating.
const LOOKS: usize = 16;

/// Turns a stale claim, as it was seen, into one that needs review. Whoever's write it is that does it has a person
/// told. The write is on its way from the first poll on.
pub(crate) async fn flag(
    service: &Service,
    hook: &Hook,
    record: &Record,
    patience: Patience,
) -> Result<Answer, Failure> {
    let (hook, record, worker) = (hook.clone(), record.clone(), service.clone());
    let flagging = service.complete(async move {
        let answer = worker.replace(flagged(&record, Moment::Never), patience).await?;
        if let Answer::Written { .. } = answer {
            reached(Point::Flagged);
            tell(worker, &hook, Record { status: Status::NeedsReview, ..record });
        }
        Ok(answer)
    });
    flagging.await?
}

/// Has a person told of a row that needs review, and the row say that they were.
pub(crate) fn tell(service: Service, hook: &Hook, record: Record) {
    let alert = Alert {
        key: record.key.clone(),
        job: record.job.clone(),
        reason: record.evidence(),
        record: record.clone(),
    };
    hook.call(alert, move || {
        reached(Point::Told);
        if let Err(failure) = block_on(note_told(&service, record)) {
            tracing::warn!(?failure, "the alert was raised, and that could not be recorded");
        }
    });
}

/// Notes that a person was told, for as long as the row is the one that they were told of. A holder that is alive after
/// all renews its lease meanwhile.
async fn note_told(service: &Service, mut record: Record) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        let told = flagged(&record, Moment::In(Duration::ZERO));
        let found = match service.replace(told, service.patience(None)).await? {
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

/// A row as one that needs review.
fn flagged(record: &Record, alerted: Moment) -> Replace {
    Replace {
        key: Arc::from(record.key.as_str()),
        expected: record.version(),
        row: NewRow { alerted, ..NewRow::with_history(record, Status::NeedsReview) },
        raise_fence: false,
        renew_birth: false,
        audit: None,
    }
}
