//! What came of a phase's write.

#[cfg(any(feature = "sqlite", feature = "mysql"))]
use crate::store::StoreError;
use crate::{
    record::Record,
    store::{
        Answer, PhaseDeed, PhaseWrite,
        sql::{unfinished, unreplaced},
    },
};

/// What came of a write in a transaction, with the rows that were read in it.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
#[derive(Debug)]
pub(crate) enum Outcome<R> {
    /// The claim does not stand.
    Superseded,
    /// The row is as it was to be written, with this fence.
    Written(i64),
    /// Nothing was changed; the phase's row, if there is one.
    Unwritten(Vec<R>),
}

#[cfg(any(feature = "sqlite", feature = "mysql"))]
impl<R> Outcome<R> {
    /// The answer; nothing where it may be tried again.
    pub(crate) fn answer(
        &self,
        write: &PhaseWrite,
        read: impl Fn(&R) -> Result<Record, StoreError>,
    ) -> Result<Option<Answer>, StoreError> {
        match self {
            Self::Superseded => Ok(Some(Answer::Gone)),
            Self::Written(fence) => Ok(Some(Answer::Written { fence: *fence })),
            Self::Unwritten(rows) => Ok(unwritten(write, rows.first().map(read).transpose()?)),
        }
    }
}

/// What a write that changed nothing under a claim that stands answers by the phase's row as it is; nothing where it may
/// be tried again.
pub(crate) fn unwritten(write: &PhaseWrite, found: Option<Record>) -> Option<Answer> {
    match &write.deed {
        PhaseDeed::Insert(insert) => found.map(|record| {
            if insert.made(&record) {
                Answer::Written { fence: record.fence }
            } else {
                Answer::Found(Box::new(record))
            }
        }),
        PhaseDeed::Replace(replace) => unreplaced(replace, found),
        PhaseDeed::Finish(finish) => unfinished(finish, found),
    }
}
