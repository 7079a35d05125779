//! Entering a phase: the claim of its job stands over whatever it writes.

use std::sync::Arc;

use super::{Ticket, admit::Call};
use crate::{
    claim::Lease,
    current::{Context, Part, Whole},
    error::Error,
    job::{Job, Mode},
    record::Under,
    service::Failure,
    store::{Renew, transaction::Transaction},
};

/// What a phase stands under.
#[derive(Clone)]
pub(super) struct Shelter {
    /// The execution of the job.
    whole: Arc<Context>,
    owner: String,
    /// When the job's row was born; `None` is in this execution, before which it has no phases.
    pub(super) born: Option<i64>,
}

impl Shelter {
    fn of(whole: &Arc<Context>) -> Option<Self> {
        let owner = whole.owner.clone()?;
        Some(Self { whole: Arc::clone(whole), owner, born: whole.born() })
    }

    /// What the decision has to know.
    pub(super) fn under(&self) -> Under<'_> {
        Under { owner: &self.owner, fence: self.whole.fence, born: self.born }
    }

    /// The job's claim, as a store renews it.
    pub(super) fn claim(&self) -> Renew {
        Renew {
            key: Arc::clone(&self.whole.stored),
            owner: self.owner.clone(),
            fence: self.whole.fence,
            lease: self.whole.job.lease(),
        }
    }

    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    pub(super) fn fence(&self) -> i64 {
        self.whole.fence
    }

    /// The lease of the job's claim; one in a caller's transaction has none.
    pub(super) fn lease(&self) -> Option<&Arc<Lease>> {
        self.whole.lease.as_ref()
    }

    /// Whether the job's claim is in a caller's transaction, which nobody else sees.
    pub(super) fn is_inside(&self) -> bool {
        self.whole.job.mode() == Mode::Transactional
    }

    pub(super) fn part(&self) -> Part {
        Part::Phase(Arc::clone(&self.whole))
    }
}

impl Call {
    /// A call that enters a phase of the job around it.
    pub(super) fn enter_phase(ticket: Ticket) -> Result<Self, Error> {
        let outer = Context::current().ok_or(Error::OutsideJob { called: "phase!" })?;
        let job = ticket.called();
        let whole = outer.whole();
        whole.job.note_phases();
        let key = outer.key.phase(&ticket.key.finish()?);
        let Some(shelter) = Shelter::of(whole) else {
            return Err(unsheltered(
                job,
                "is `record_after`, and claims nothing that a phase could stand under",
            ));
        };
        let (is_inside, joins) = (shelter.is_inside(), job.mode() == Mode::Transactional);
        if is_inside && !joins {
            return Err(unsheltered(
                job,
                "is `transactional`, and its phases join its transaction: write `mode = \"transactional\"` and `tx = …`",
            ));
        }
        let stored = key.stored();
        if !whole.enter(&stored) {
            return Err(Error::PhaseRepeated { key });
        }
        if joins && !is_inside {
            whole.lend();
        }
        let idem = outer.idem.clone();
        Self::new(job, idem, key, stored, None, Some(outer), Some(shelter))
    }

    /// The claim that the row of a phase is written under.
    pub(super) fn job_claim(&self) -> Option<Renew> {
        self.shelter.as_ref().map(Shelter::claim)
    }

    /// Whether there can be no row of it: a phase of a job whose life this execution began.
    pub(super) fn is_first(&self) -> bool {
        self.shelter.as_ref().is_some_and(|shelter| shelter.born.is_none())
    }

    /// What the store did not do, and why that may be.
    pub(super) fn failed(&self, failure: Failure) -> Error {
        let may_wait_for_itself = self.shelter.as_ref().is_some_and(|shelter| shelter.whole.is_lent());
        match failure.into_error(Some(&self.key)) {
            Error::Store { key, message, source } if may_wait_for_itself => {
                let message = format!(
                    "{message}; if the transaction of an earlier phase is still open, it is what this waits for: commit it \
                     before the next phase"
                );
                Error::Store { key, message, source }
            }
            error => error,
        }
    }

    /// The claim of the job is gone, or the phase's row is.
    pub(super) fn superseded(&self) -> Error {
        Error::ClaimLost { key: self.key.clone() }
    }

    /// What the row of a whole job that is to be claimed tells of its phases.
    pub(super) fn whole(&self, born: Option<i64>) -> Part {
        match &self.shelter {
            Some(shelter) => shelter.part(),
            None => Part::Whole(Whole { born, ..Whole::default() }),
        }
    }

    /// In a caller's transaction: looks at the row of the phase's job, which must carry the job's claim. It is in the same
    /// transaction, or else committed, where an older snapshot of this one would not show it.
    pub(super) async fn stand_under(&mut self, transaction: &mut dyn Transaction) -> Result<(), Error> {
        let Some(shelter) = self.shelter.clone() else { return Ok(()) };
        let key = &shelter.whole.stored;
        let job = if shelter.is_inside() {
            transaction.read(key).await.map_err(|halt| self.halted(halt))?
        } else {
            self.look_aside(key).await?
        };
        match job.filter(|job| job.is_of(&shelter.owner, shelter.whole.fence)) {
            Some(job) => {
                self.fingerprint = Some(job.created_at.to_string());
                self.shelter = Some(Shelter { born: Some(job.created_at), ..shelter });
                Ok(())
            }
            None if shelter.is_inside() => Err(unsheltered(
                self.job,
                "is `transactional`, and this is another transaction than the one it runs in",
            )),
            None => Err(self.superseded()),
        }
    }
}

fn unsheltered(phase: &Job, why: &str) -> Error {
    Error::config(format!(
        "the phase `{}` ({}) did not run, for its job {why}",
        phase.name(),
        phase.location()
    ))
}
