//! What a request asks of the store.

use std::sync::Arc;

use super::Done;
use crate::{
    job::OnStale,
    point::{Point, reached},
    record::Status,
    store::{
        Answer, ErrorClass, Finish, Insert, NewRow, PhaseDeed, PhaseWrite, Renew, Replace, Store, StoreError,
    },
};

/// What a request asks of the store.
#[derive(Debug)]
pub(super) enum Work {
    Insert(Box<Insert>),
    Replace(Box<Replace>),
    Finish(Finish),
    Phase(Box<PhaseWrite>),
    Read(Arc<str>),
}

impl Work {
    /// Of a phase under the claim of its job, as the others.
    pub(super) fn inserting(insert: Insert, job: Option<Renew>) -> Self {
        let insert = Box::new(insert);
        match job {
            Some(job) => Self::of_phase(job, PhaseDeed::Insert(insert)),
            None => Self::Insert(insert),
        }
    }

    pub(super) fn replacing(replace: Replace, job: Option<Renew>) -> Self {
        let replace = Box::new(replace);
        match job {
            Some(job) => Self::of_phase(job, PhaseDeed::Replace(replace)),
            None => Self::Replace(replace),
        }
    }

    pub(super) fn finishing(finish: Finish, job: Option<Renew>) -> Self {
        match job {
            Some(job) => Self::of_phase(job, PhaseDeed::Finish(finish)),
            None => Self::Finish(finish),
        }
    }

    fn of_phase(job: Renew, deed: PhaseDeed) -> Self {
        Self::Phase(Box::new(PhaseWrite { job, deed }))
    }

    pub(super) fn key(&self) -> &Arc<str> {
        match self {
            Self::Insert(insert) => &insert.key,
            Self::Replace(replace) => &replace.key,
            Self::Finish(finish) => &finish.key,
            Self::Phase(write) => write.key(),
            Self::Read(key) => key,
        }
    }

    pub(super) fn as_insert(&self) -> Option<&Insert> {
        if let Self::Insert(insert) = self { Some(insert) } else { None }
    }

    pub(super) fn as_finish(&self) -> Option<&Finish> {
        if let Self::Finish(finish) = self { Some(finish) } else { None }
    }

    pub(super) fn as_phase(&self) -> Option<&PhaseWrite> {
        if let Self::Phase(write) = self { Some(write) } else { None }
    }

    /// Says which point is reached once the store has answered.
    pub(super) fn was_answered(&self, answer: &Answer) {
        let Answer::Written { .. } = answer else { return };
        match self.row().map(|row| &row.status) {
            Some(Status::Processing) => reached(Point::ClaimWritten),
            None if matches!(self, Self::Read(_)) => {}
            Some(Status::Completed | Status::Failed) | None => reached(Point::EndingWritten),
            Some(_) => {}
        }
    }

    /// The row that a write puts in place, where it is a whole one.
    pub(super) fn row(&self) -> Option<&NewRow> {
        match self {
            Self::Insert(insert) => Some(&insert.row),
            Self::Replace(replace) => Some(&replace.row),
            Self::Phase(write) => match &write.deed {
                PhaseDeed::Insert(insert) => Some(&insert.row),
                PhaseDeed::Replace(replace) => Some(&replace.row),
                PhaseDeed::Finish(_) => None,
            },
            Self::Finish(_) | Self::Read(_) => None,
        }
    }

    /// The row that a write replaces, as it was seen.
    pub(super) fn replaced(&self) -> Option<&Replace> {
        match self {
            Self::Replace(replace) => Some(replace),
            Self::Phase(write) => match &write.deed {
                PhaseDeed::Replace(replace) => Some(replace),
                PhaseDeed::Insert(_) | PhaseDeed::Finish(_) => None,
            },
            Self::Insert(_) | Self::Finish(_) | Self::Read(_) => None,
        }
    }

    /// Whether the write takes a claim over whose effect is then asked about.
    pub(super) fn is_doubtful(&self) -> bool {
        let Some(replace) = self.replaced() else { return false };
        let asks = replace.row.on_stale.as_deref().map(OnStale::from_row) == Some(OnStale::Probe);
        asks && replace.expected.status == Status::Processing
    }

    /// The owner of the claim that a write asks for.
    pub(super) fn owner(&self) -> Option<&str> {
        self.row()?.owner.as_deref()
    }
}

/// One request by itself.
pub(super) async fn perform_alone(store: &dyn Store, work: &Work) -> Result<Done, StoreError> {
    fn only<T>(answers: Vec<T>) -> Result<T, StoreError> {
        answers.into_iter().next().ok_or_else(|| {
            StoreError::new(ErrorClass::Permanent, "reading an answer", "the store gave none for a request")
        })
    }
    Ok(match work {
        Work::Insert(insert) => Done::Answer(only(store.insert(std::slice::from_ref(&**insert)).await?)?),
        Work::Replace(replace) => Done::Answer(store.replace(replace).await?),
        Work::Finish(finish) => Done::Answer(only(store.finish(std::slice::from_ref(finish)).await?)?),
        Work::Phase(write) => Done::Answer(only(store.phase(std::slice::from_ref(&**write)).await?)?),
        Work::Read(key) => Done::Read(only(store.read(std::slice::from_ref(key)).await?)?.map(Box::new)),
    })
}
