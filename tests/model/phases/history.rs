//! The history that the invariants speak of: none of it is known to the protocol.

use idem_runtime::Status;
use idem_tests::table::Row;

use super::{
    job::Part,
    state::State,
    write::{Hold, Sent, Write, life_of},
};
use crate::person::Deed;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct History {
    /// The lives that the job had, the last one being that of its row, or of the next one.
    pub(super) lives: Vec<Life>,
    /// Whose claim the job's row is: the execution that was granted it last, unless it ended it or was fenced off.
    pub(super) holder: Option<u8>,
    /// The first invariant that was broken.
    pub(super) flaw: Option<Flaw>,
}

impl Default for History {
    fn default() -> Self {
        Self { lives: vec![Life::default()], holder: None, flaw: None }
    }
}

/// What happened in one life of the job: from its first claim on until it is past its ttl, or forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Life {
    /// Charges, and mails; up to two.
    pub(super) charges: u8,
    pub(super) mails: u8,
    /// Whether the charge is completed, and the mail.
    completed: [bool; 2],
    /// A person said that a phase happened.
    said: bool,
    /// A person had the charge run again.
    pub(super) freed: bool,
}

impl Life {
    fn completed(&mut self, phase: Part) -> &mut bool {
        &mut self.completed[usize::from(phase == Part::Mail)]
    }
}

/// An invariant that was broken. Each says what must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flaw {
    SecondCharge,
    RunAgain,
    ZombieWrote,
    CompletionChanged,
    FormerLife,
    FoundBusy,
    FlaggedAlive,
    Unfounded,
}

impl Flaw {
    /// The invariant, in words.
    pub(super) const fn invariant(self) -> &'static str {
        match self {
            Self::SecondCharge => {
                "in one life of a job there is no second charge, unless a person freed the phase"
            }
            Self::RunAgain => "who holds the job enters no phase that is completed in its life",
            Self::ZombieWrote => "who does not hold the job writes neither its row nor that of a phase",
            Self::CompletionChanged => {
                "a completed phase changes only by force, or once its job's life is over"
            }
            Self::FormerLife => "no phase of one life of a job is replayed in another",
            Self::FoundBusy => "who holds the job waits for nobody in its phases",
            Self::FlaggedAlive => {
                "nobody turns over the phase of whoever holds the job, while its lease runs"
            }
            Self::Unfounded => "a job is completed only if each of its phases happened in its life",
        }
    }
}

impl History {
    pub(super) fn begin_life(&mut self) {
        self.lives.push(Life::default());
        self.holder = None;
    }

    /// The number of the life that began last.
    pub(super) fn life(&self) -> usize {
        self.lives.len() - 1
    }

    pub(super) fn note(&mut self, flaw: Flaw) {
        self.flaw.get_or_insert(flaw);
    }

    fn is_held_by(&self, of: Hold) -> bool {
        self.holder == Some(of.owner)
    }

    pub(super) fn effect(&mut self, of: Hold, phase: Part) {
        let life = &mut self.lives[of.life];
        let effects = if phase == Part::Charge { &mut life.charges } else { &mut life.mails };
        *effects = (*effects + 1).min(2);
        if life.charges > 1 && !life.freed {
            self.note(Flaw::SecondCharge);
        }
    }

    /// An execution goes on into a phase.
    pub(super) fn enters(&mut self, of: Hold, phase: Part) {
        if self.is_held_by(of) && *self.lives[of.life].completed(phase) {
            self.note(Flaw::RunAgain);
        }
    }

    /// An execution waits for whoever is in a phase.
    pub(super) fn waits(&mut self, of: Hold) {
        if self.is_held_by(of) {
            self.note(Flaw::FoundBusy);
        }
    }

    /// An execution takes the result of a phase from its row.
    pub(super) fn replays(&mut self, of: Hold, row: &Row) {
        if life_of(row).is_some_and(|life| life != of.life) {
            self.note(Flaw::FormerLife);
        }
    }

    /// A job ended well.
    fn founded(&mut self, of: Hold) {
        let life = &self.lives[of.life];
        if !life.said && (life.charges == 0 || life.mails == 0) {
            self.note(Flaw::Unfounded);
        }
    }
}

impl State {
    /// What the history says of a write that changed a row.
    pub(super) fn witness(&mut self, sent: &Sent, before: Option<&Row>, after: Option<&Row>) {
        let job = self.table.row(Part::Job.key());
        let birth = job.map(|row| row.created_at.to_string());
        let now = self.now;
        let is_held_alive = |row: &Row| {
            let of_the_holder = job.is_some_and(|job| job.owner == row.owner && job.fence == row.fence);
            of_the_holder && row.lease_until.is_some_and(|end| now < end)
        };
        let flags_alive = matches!(sent.write, Write::Flag { .. })
            && sent.part != Part::Job
            && before.is_some_and(is_held_alive);
        let history = &mut self.history;
        let Sent { part, write } = sent;
        if let (Some(before), Some(after)) = (before, after)
            && *part != Part::Job
            && before.status == Status::Completed
            && (after.status != Status::Completed || after.result != before.result)
            && before.fingerprint == after.fingerprint
            && !matches!(write, Write::Decide { force: true, .. })
        {
            history.note(Flaw::CompletionChanged);
        }
        if flags_alive && history.holder.is_some() {
            history.note(Flaw::FlaggedAlive);
        }
        match write {
            Write::Claim { owner } | Write::Take { owner, .. } => history.holder = Some(*owner),
            Write::Finish { of, .. } => {
                history.writes(*of);
                history.holder = None;
                if after.is_some_and(|row| row.status == Status::Completed) {
                    history.founded(*of);
                }
            }
            Write::Renew { of } => history.writes(*of),
            Write::Phase { of, .. } => {
                history.writes(*of);
                history.enters(*of, *part);
            }
            Write::Record { of, .. } | Write::Complete { of, .. } => {
                history.writes(*of);
                *history.lives[of.life].completed(*part) = true;
            }
            // Who gives up its own claim of a phase changes nothing for whoever holds the job.
            Write::GiveUp { .. } | Write::Flag { .. } => {}
            Write::Decide { seen, deed, force } if *part == Part::Job => match deed {
                Deed::Forget => history.begin_life(),
                _ if Deed::raises_fence(seen, *force) => history.holder = None,
                _ => {}
            },
            // What is left of a former life means nothing to this one.
            Write::Decide { seen, .. } if seen.fingerprint != birth => {}
            Write::Decide { deed, .. } => history.decided(*part, *deed),
        }
    }
}

impl History {
    /// An execution wrote a row, or renewed its lease.
    pub(super) fn writes(&mut self, of: Hold) {
        if !self.is_held_by(of) {
            self.note(Flaw::ZombieWrote);
        }
    }

    /// A person decided about a phase.
    fn decided(&mut self, phase: Part, deed: Deed) {
        let last = self.life();
        let life = &mut self.lives[last];
        *life.completed(phase) = deed == Deed::Complete;
        life.said |= deed == Deed::Complete;
        life.freed |= phase == Part::Charge && matches!(deed, Deed::Retry | Deed::Forget);
    }
}
