//! A job of two phases: a charge, of which two in one life of the job are one too many, and a mail, which is sent again
//! where nobody knows. The charge claims its row and completes it, the mail only records that it was sent; both do so
//! under the claim of the job, which is taken over from whoever falls silent.
//!
//! What a worker does about a row is the runtime's own decision, and [`Table::phase`](idem_tests::table::Table::phase)
//! writes the rows. Workers die or fall silent anywhere, come back, and lose answers; people free keys; jobs expire and
//! are purged; and somebody deletes a job's row by hand, and leaves its phases.

mod bites;
mod history;
mod holds;
mod job;
mod recovery;
mod sight;
mod state;
mod worker;
mod write;

use std::sync::Mutex;

use idem_runtime::Job;
use stateright::{Model, Property};

use self::{
    history::Flaw,
    job::Part,
    recovery::{NEVER_WEDGED, Recovered},
    sight::Sight,
    state::{Bound, State, take},
    worker::Step,
    write::{A_WHILE, Sent, Write},
};
use crate::{
    job::{FOREIGN_STALE_AFTER, SECOND},
    person::Deed,
    state::spend,
};

/// How many workers there are: each is at one delivery at a time.
const WORKERS: usize = 2;

/// The protocol with a configuration, and what is broken in it.
#[derive(Debug)]
pub(crate) struct Phased {
    job: &'static Job,
    mail: &'static Job,
    /// Whether the job's own text shows that it has phases.
    shows: bool,
    bound: Bound,
    deeds: &'static [Deed],
    mutant: Option<Mutant>,
    sights: &'static [Sight],
    recovered: Mutex<Recovered>,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// A phase's row is written whatever became of its job's claim.
    WritesUnguarded,
    /// The claim of the job is told by its owner alone.
    GuardsWithoutFence,
    /// The claim of a phase that another execution left is waited for like any other.
    WaitsForTheDead,
    /// That of any other execution is taken for stale, be it a predecessor's or an heir's.
    TakesAnyForADead,
    /// A phase counts whichever life of the job it was written in.
    ForgetsTheBirth,
    /// So it does for the execution that begins a life.
    ForgetsWhoBegan,
    /// A released job is purged as early as one without phases.
    ReleasesWithoutPhases,
    /// Who takes over a job that does not show its phases does not look for them.
    OverlooksPhases,
    /// A phase that is claimed by nobody is entered without a look, whoever began the job.
    EntersUnseen,
    /// A flag for review counts whatever became of the row since it was read.
    FlagsFromAnOldSnapshot,
    /// The job goes on behind a phase that a person has to decide about.
    PassesByAReview,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// The queue delivers, and the worker claims the job.
    Deliver {
        lost: bool,
    },
    /// A worker goes on. Where its write is lost, it arrives late or never, and the worker has no answer.
    Go {
        delivery: u8,
        step: Step,
        lost: bool,
    },
    /// The process of a worker dies.
    Die {
        delivery: u8,
    },
    /// A heartbeat of the job's claim.
    Beat {
        delivery: u8,
        lost: bool,
    },
    /// A lost write arrives.
    Arrive(usize),
    /// The clock goes on, past the leases and ttls that run.
    Tick,
    Purge,
    /// Somebody deletes the job's row by hand, and takes their time.
    Delete,
    /// A watcher finds a stale claim that waits for a person.
    Watch(Part),
    /// A person looks at a key and makes up their mind.
    Look {
        part: Part,
        deed: Deed,
        force: bool,
    },
    /// What a watcher or a person made up from an old look is written.
    Write(usize),
}

impl Phased {
    fn new(job: &'static Job, bound: Bound) -> Self {
        Self {
            job,
            mail: &job::MAIL,
            shows: true,
            bound,
            deeds: Deed::ALL,
            mutant: None,
            sights: &[],
            recovered: Mutex::default(),
        }
    }

    fn job(&self, part: Part) -> &'static Job {
        match part {
            Part::Job => self.job,
            Part::Charge => &job::CHARGE,
            Part::Mail => self.mail,
        }
    }

    fn others_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for part in Part::ALL {
            let Some(row) = state.table.read(state.now, part.key()) else { continue };
            let watched = row.waits_for_review() && row.stale_at(FOREIGN_STALE_AFTER) <= row.now;
            if state.left.watches > 0 && watched {
                actions.push(Action::Watch(part));
            }
            if state.left.deeds > 0 {
                for &deed in self.deeds {
                    if deed.is_allowed(&row, false) {
                        actions.push(Action::Look { part, deed, force: false });
                    } else {
                        actions.push(Action::Look { part, deed, force: true });
                    }
                }
            }
        }
    }

    /// The purge deletes what is past its expiry. That of a job whose rows are kept for ever ends no life.
    fn purge(&self, state: &mut State) {
        let purged = state.table.purge(state.now);
        if !purged.is_empty() && self.job.retention().is_some() {
            state.history.begin_life();
        }
    }
}

impl Model for Phased {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.bound)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.history.flaw.is_some() {
            return;
        }
        let lossy = state.left.losses > 0;
        if state.left.deliveries > 0 && state.workers.len() < WORKERS {
            actions.push(Action::Deliver { lost: false });
            if lossy {
                actions.push(Action::Deliver { lost: true });
            }
        }
        for worker in &state.workers {
            let delivery = worker.delivery;
            for &step in worker.steps() {
                actions.push(Action::Go { delivery, step, lost: false });
                if lossy && worker.sends(step) {
                    actions.push(Action::Go { delivery, step, lost: true });
                }
            }
            actions.push(Action::Die { delivery });
            if self.bound.beats && worker.of.is_some() {
                actions.push(Action::Beat { delivery, lost: false });
                if lossy {
                    actions.push(Action::Beat { delivery, lost: true });
                }
            }
        }
        actions.extend((0..state.late.len()).map(Action::Arrive));
        actions.extend((0..state.errands.len()).map(Action::Write));
        if state.left.ticks > 0 {
            actions.push(Action::Tick);
        }
        if state.left.deletions > 0 && state.table.row(Part::Job.key()).is_some() {
            actions.push(Action::Delete);
        }
        if self.bound.purges {
            actions.push(Action::Purge);
        }
        self.others_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver { lost } => {
                spend(&mut state.left.deliveries);
                state.left.losses -= u8::from(lost);
                let delivery = self.bound.deliveries - state.left.deliveries;
                self.begin(&mut state, delivery, lost);
            }
            Action::Go { delivery, step, lost } => {
                let worker = take(&mut state, delivery)?;
                state.left.losses -= u8::from(lost);
                self.go(&mut state, worker, step, lost);
            }
            Action::Die { delivery } => {
                take(&mut state, delivery)?;
            }
            Action::Beat { delivery, lost } => {
                let worker = state.workers.iter().find(|worker| worker.delivery == delivery)?;
                let sent = Sent { part: Part::Job, write: Write::Renew { of: worker.of? } };
                if lost {
                    state.late.push(sent);
                    spend(&mut state.left.losses);
                } else {
                    self.arrive(&mut state, &sent);
                }
            }
            Action::Arrive(place) => {
                let sent = state.late.remove(place);
                self.arrive(&mut state, &sent);
            }
            Action::Tick => {
                spend(&mut state.left.ticks);
                state.now += SECOND;
            }
            Action::Purge => self.purge(&mut state),
            Action::Delete => {
                spend(&mut state.left.deletions);
                state.table.delete(Part::Job.key());
                state.now += A_WHILE;
                state.history.begin_life();
            }
            Action::Watch(part) => {
                let seen = state.table.read(state.now, part.key())?;
                spend(&mut state.left.watches);
                state.errands.push(Sent { part, write: Write::Flag { seen } });
            }
            Action::Look { part, deed, force } => {
                let seen = state.table.read(state.now, part.key())?;
                spend(&mut state.left.deeds);
                state.errands.push(Sent { part, write: Write::Decide { seen, deed, force } });
            }
            Action::Write(place) => {
                let sent = state.errands.remove(place);
                self.arrive(&mut state, &sent);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! never {
            ($($flaw:ident)+) => { vec![$(Property::always(
                Flaw::$flaw.invariant(),
                |_: &Self, state: &State| state.history.flaw != Some(Flaw::$flaw),
            )),+] };
        }
        let mut properties = never! {
            SecondCharge RunAgain ZombieWrote CompletionChanged FormerLife FoundBusy FlaggedAlive Unfounded
        };
        properties.extend(self.sights.iter().map(|sight| sight.property()));
        properties.push(Property::always(NEVER_WEDGED, |phased: &Self, state: &State| {
            state.history.flaw.is_some() || phased.goes_on(state)
        }));
        properties
    }
}
