//! A worker: where it stands, what it can do next, and what it makes of an answer.

use idem_runtime::record::{Decision, Standing, micros};
use idem_tests::table::Row;

use super::{
    Mutant, Phased,
    job::Part,
    state::State,
    write::{End, Hold, Sent, Write},
};
use crate::{job::RELEASED_FOR, write::Heard};

/// How many claims of the job a worker tries before it answers that the key is busy.
const LOOKS: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(super) delivery: u8,
    /// How many claims of the job it sent.
    looks: u8,
    /// Whether it knows that the job has phases.
    phased: bool,
    /// Its claim of the job, once that was granted.
    pub(super) of: Option<Hold>,
    pub(super) at: At,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// It claims the job, of which it saw no row.
    Absent,
    /// It claims the job's row, of which it saw this.
    Seen(Row),
    /// It turns this stale claim over to a person.
    Flagging(Part, Row),
    /// It holds the job, and its body has not come to a phase.
    Begun,
    /// It comes to a phase, whose row it has not seen.
    Before(Part),
    /// It claims the charge, of which it saw no row or this.
    Claiming(Option<Row>),
    /// It holds the charge under this fence; nothing happened yet.
    Held(i64),
    /// It charged, and completes the phase.
    Charged(i64),
    /// The mail is to be sent.
    Clear,
    /// The mail was sent, and is to be recorded over this row.
    Recording(Option<Row>),
    /// The body ended, in a way that the queue is told of.
    Over(Told),
    /// It sent this, and has no answer.
    Unsure(Part, Write),
}

/// A step of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Looks at the row of the phase that it comes to.
    Look,
    /// Sends what comes next, or what was not answered.
    Send,
    /// The effect in the outside world.
    Effect,
    /// Ends the phase, or the job, in another way than well.
    End(End),
}

/// What the queue is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Told {
    Done,
    Busy,
    Review(Part),
    Failed,
    Error,
}

/// What comes of a step.
pub(super) enum Next {
    At(At),
    Answers(Told),
}

impl Worker {
    /// What it can do next.
    pub(super) fn steps(&self) -> &'static [Step] {
        match &self.at {
            At::Before(_) => &[Step::Look],
            At::Begun => &[Step::Look, Step::End(End::Released)],
            At::Held(_) => &[Step::Effect, Step::End(End::Released), Step::End(End::Held)],
            At::Charged(_) => &[Step::Send, Step::End(End::Held)],
            // A body that fails, or panics.
            At::Clear => &[Step::Effect, Step::End(End::Released)],
            At::Over(told) if *told != Told::Done => &[Step::End(End::Released), Step::End(End::Held)],
            At::Absent
            | At::Seen(_)
            | At::Flagging(..)
            | At::Claiming(_)
            | At::Recording(_)
            | At::Over(_)
            | At::Unsure(..) => &[Step::Send],
        }
    }

    /// Whether a step sends something.
    pub(super) fn sends(&self, step: Step) -> bool {
        self.clone().write(step).is_some()
    }

    fn next_owner(&mut self) -> u8 {
        self.looks += 1;
        self.delivery * 10 + self.looks
    }

    /// The write that a step sends.
    fn write(&mut self, step: Step) -> Option<Sent> {
        let of = self.of;
        let (part, write) = match (self.at.clone(), step) {
            (At::Absent, Step::Send) => (Part::Job, Write::Claim { owner: self.next_owner() }),
            (At::Seen(seen), Step::Send) => (Part::Job, Write::Take { owner: self.next_owner(), seen }),
            (At::Flagging(part, seen), Step::Send) => (part, Write::Flag { seen }),
            (At::Claiming(over), Step::Send) => (Part::Charge, Write::Phase { of: of?, over }),
            (At::Charged(fence), Step::Send) => (Part::Charge, Write::Complete { of: of?, fence }),
            (At::Held(fence) | At::Charged(fence), Step::End(end)) => {
                (Part::Charge, Write::GiveUp { of: of?, fence, end })
            }
            (At::Recording(over), Step::Send) => (Part::Mail, Write::Record { of: of?, over }),
            (At::Over(Told::Done), Step::Send) => {
                (Part::Job, Write::Finish { of: of?, end: End::Completed, phased: self.phased })
            }
            (At::Over(_) | At::Begun, Step::End(end)) => {
                (Part::Job, Write::Finish { of: of?, end, phased: self.phased })
            }
            (At::Unsure(part, write), Step::Send) => (part, write),
            _ => return None,
        };
        Some(Sent { part, write })
    }
}

impl Phased {
    /// A new delivery, whose worker claims the job.
    pub(super) fn begin(&self, state: &mut State, delivery: u8, lost: bool) -> Option<Told> {
        let worker = Worker { delivery, looks: 0, phased: self.shows, of: None, at: At::Absent };
        self.go(state, worker, Step::Send, lost)
    }

    /// A step of a worker that was taken out of the state; what the queue is told if that was its last.
    pub(super) fn go(&self, state: &mut State, mut worker: Worker, step: Step, lost: bool) -> Option<Told> {
        let next = match worker.write(step) {
            Some(sent) if lost => {
                let unsure = At::Unsure(sent.part, sent.write.clone());
                state.late.push(sent);
                Next::At(unsure)
            }
            Some(sent) => {
                let heard = self.arrive(state, &sent);
                self.hear(state, &mut worker, sent, heard)
            }
            None => self.act(state, &mut worker, step),
        };
        match next {
            Next::At(at) => {
                worker.at = at;
                state.put(worker);
                None
            }
            Next::Answers(told) => Some(told),
        }
    }

    /// A step that sends nothing.
    fn act(&self, state: &mut State, worker: &mut Worker, step: Step) -> Next {
        let Some(of) = worker.of else { return Next::Answers(Told::Error) };
        Next::At(match (worker.at.clone(), step) {
            (At::Begun, Step::Look) => self.come_to(state, worker, of, Part::Charge),
            (At::Before(phase), Step::Look) => match state.table.read(state.now, phase.key()) {
                Some(row) => self.meet(state, worker, of, phase, row),
                None => run(state, of, phase, None),
            },
            (At::Held(fence), Step::Effect) => {
                state.history.effect(of, Part::Charge);
                At::Charged(fence)
            }
            (At::Clear, Step::Effect) => {
                state.history.effect(of, Part::Mail);
                At::Recording(None)
            }
            _ => At::Over(Told::Error),
        })
    }

    /// An execution comes to a phase. Before the one in which the job's row was born there was none.
    fn come_to(&self, state: &mut State, worker: &mut Worker, of: Hold, phase: Part) -> At {
        worker.phased = true;
        let unseen = phase == Part::Mail && self.mutant == Some(Mutant::EntersUnseen);
        if of.born.is_none() || unseen { run(state, of, phase, None) } else { At::Before(phase) }
    }

    /// Behind a phase.
    fn behind(&self, state: &mut State, worker: &mut Worker, of: Hold, phase: Part) -> At {
        if phase == Part::Charge { self.come_to(state, worker, of, Part::Mail) } else { At::Over(Told::Done) }
    }

    /// What an execution does about the row of a phase.
    fn meet(&self, state: &mut State, worker: &mut Worker, of: Hold, phase: Part, row: Row) -> At {
        match self.decide_phase(of, phase, &row) {
            Decision::Run(_) => run(state, of, phase, Some(row)),
            Decision::Flag => At::Flagging(phase, row),
            Decision::Replay => {
                state.history.replays(of, &row);
                self.behind(state, worker, of, phase)
            }
            Decision::Review if self.mutant == Some(Mutant::PassesByAReview) => {
                self.behind(state, worker, of, phase)
            }
            Decision::Review => At::Over(Told::Review(phase)),
            Decision::Busy { .. } => {
                state.history.waits(of);
                At::Over(Told::Busy)
            }
            Decision::Failed => At::Over(Told::Failed),
            Decision::Conflict { .. } | Decision::Mismatch => At::Over(Told::Error),
        }
    }

    /// What a worker does about the job's row.
    fn meet_job(&self, state: &State, worker: &mut Worker, row: Row) -> Next {
        match self.decide_job(&row) {
            Decision::Run(_) | Decision::Flag if worker.looks >= LOOKS => Next::Answers(Told::Busy),
            Decision::Run(standing) => {
                worker.phased |= self.notices_phases(state, &row, standing);
                Next::At(At::Seen(row))
            }
            Decision::Flag => Next::At(At::Flagging(Part::Job, row)),
            Decision::Replay => Next::Answers(Told::Done),
            Decision::Review => Next::Answers(Told::Review(Part::Job)),
            Decision::Busy { .. } => Next::Answers(Told::Busy),
            Decision::Failed => Next::Answers(Told::Failed),
            Decision::Conflict { .. } | Decision::Mismatch => Next::Answers(Told::Error),
        }
    }

    /// Whether a worker finds out that an earlier execution left phases.
    fn notices_phases(&self, state: &State, row: &Row, standing: Standing) -> bool {
        if self.mutant == Some(Mutant::OverlooksPhases) {
            return false;
        }
        match standing {
            Standing::Released => row.expires_at.is_none_or(|end| end - row.now > micros(RELEASED_FOR)),
            Standing::Stale | Standing::Doubtful => state.table.has_phases(Part::Job.key()),
            Standing::Absent | Standing::Expired | Standing::Claimed => false,
        }
    }

    /// What a worker makes of the answer to a write.
    fn hear(&self, state: &mut State, worker: &mut Worker, sent: Sent, heard: Heard) -> Next {
        let Sent { part, write } = sent;
        let granted =
            |state: &State, owner, fence, born| Hold { owner, fence, born, life: state.history.life() };
        match (write, heard) {
            (Write::Claim { owner }, Heard::Written { fence }) => {
                let of = granted(state, owner, fence, None);
                self.enter(state, worker, of)
            }
            (Write::Take { owner, seen }, Heard::Written { fence }) => {
                let is_new = self.decide_job(&seen) == Decision::Run(Standing::Expired);
                let of = granted(state, owner, fence, (!is_new).then_some(seen.created_at));
                self.enter(state, worker, of)
            }
            (Write::Flag { .. }, Heard::Written { .. }) if part == Part::Job => {
                Next::Answers(Told::Review(Part::Job))
            }
            (Write::Claim { .. } | Write::Take { .. } | Write::Flag { .. }, heard) if part == Part::Job => {
                match heard {
                    Heard::Found(row) => self.meet_job(state, worker, row),
                    _ if worker.looks < LOOKS => Next::At(At::Absent),
                    _ => Next::Answers(Told::Busy),
                }
            }
            (Write::Finish { end, .. }, heard) => Next::Answers(match worker.at {
                _ if end == End::Completed && matches!(heard, Heard::Written { .. }) => Told::Done,
                At::Over(told) if end != End::Completed => told,
                _ => Told::Error,
            }),
            (write, heard) => match worker.of {
                Some(of) => Next::At(self.hear_of_phase(state, worker, of, part, write, heard)),
                None => Next::Answers(Told::Error),
            },
        }
    }

    fn enter(&self, state: &mut State, worker: &mut Worker, of: Hold) -> Next {
        worker.of = Some(of);
        Next::At(if self.shows { self.come_to(state, worker, of, Part::Charge) } else { At::Begun })
    }

    fn hear_of_phase(
        &self,
        state: &mut State,
        worker: &mut Worker,
        of: Hold,
        phase: Part,
        write: Write,
        heard: Heard,
    ) -> At {
        match (write, heard) {
            (Write::Phase { .. }, Heard::Written { fence }) => At::Held(fence),
            (Write::Phase { over: Some(_), .. } | Write::Flag { .. }, Heard::Gone) => At::Claiming(None),
            (Write::Phase { .. } | Write::Flag { .. }, Heard::Found(row)) => self.meet(state, worker, of, phase, row),
            (Write::Flag { .. }, Heard::Written { .. }) => At::Over(Told::Review(phase)),
            (Write::Record { .. }, Heard::Found(row)) if self.gives_way(of, &row) => At::Recording(Some(row)),
            (Write::Record { over: Some(_), .. }, Heard::Gone) => At::Recording(None),
            (Write::Complete { .. }, Heard::Written { .. })
            // Where another ending was recorded first, that one stays.
            | (Write::Record { .. }, Heard::Written { .. } | Heard::Found(_)) => {
                self.behind(state, worker, of, phase)
            }
            _ => At::Over(Told::Error),
        }
    }
}

/// An execution goes on into a phase.
fn run(state: &mut State, of: Hold, phase: Part, over: Option<Row>) -> At {
    if phase == Part::Charge {
        return At::Claiming(over);
    }
    state.history.enters(of, phase);
    At::Clear
}
