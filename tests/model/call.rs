//! A call: where it stands, what it can do next, and what it makes of an answer.

use idem_runtime::{Mode, OnError};
use idem_tests::table::Row;

use crate::{
    job::verdicts,
    mutant::Mutant,
    protocol::Protocol,
    state::State,
    write::{End, Execution, FOUND_BY_THE_PROBE, Heard, Verdict, Write, result_of},
};

/// How many claims a call tries before it answers that the key is busy.
const LOOKS: u8 = 3;

/// A delivery that some worker is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) delivery: u8,
    pub(crate) key: usize,
    pub(crate) job: usize,
    /// How many claims it sent.
    pub(crate) looks: u8,
    pub(crate) at: At,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// It saw no row.
    Absent,
    /// It saw this row, and will do something about it.
    Seen(Row),
    /// It holds the claim; the probe was not asked yet.
    Asking(Execution),
    /// It holds the claim; the effect did not happen yet.
    Held(Execution),
    /// Its effect happened; the ending is not sent yet.
    Did(Execution),
    /// It needs no claim; the effect did not happen yet.
    Clear,
    /// Its body is over; the ending is to be recorded, over this row.
    Recording { over: Option<Row>, completes: bool },
    /// It sent this, and has no answer.
    Unsure(Write),
    /// It asked without a claim, and was told that the effect did not happen.
    Answered(Row),
}

/// A step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sends what comes next, or what was not answered.
    Send,
    /// The effect in the outside world.
    Effect,
    /// Asks the outside world whether an effect happened; it answers truthfully, if at all.
    Ask { knows: bool },
    /// Ends the execution.
    End(End),
}

/// What the queue is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Done,
    Busy,
    Review,
    Failed,
    Error,
}

/// What comes of a step.
pub(crate) enum Next {
    At(At),
    Answers(Told),
}

impl Call {
    /// The execution whose claim this call holds, or may hold without knowing.
    pub(crate) fn owner(&self) -> Option<u8> {
        match &self.at {
            At::Asking(of) | At::Held(of) | At::Did(of) => Some(of.owner),
            At::Unsure(Write::Claim { owner } | Write::Take { owner, .. }) => Some(*owner),
            At::Unsure(Write::Finish { of, .. } | Write::Review { of } | Write::Renew { of }) => {
                Some(of.owner)
            }
            _ => None,
        }
    }

    /// The execution that a heartbeat renews the lease of.
    pub(crate) fn beats(&self) -> Option<Execution> {
        match &self.at {
            At::Asking(of)
            | At::Held(of)
            | At::Did(of)
            | At::Unsure(Write::Finish { of, .. } | Write::Review { of }) => Some(*of),
            _ => None,
        }
    }

    fn next_owner(&mut self) -> u8 {
        self.looks += 1;
        self.delivery * 10 + self.looks
    }
}

impl Protocol {
    /// What a call can do next.
    pub(crate) fn steps(&self, state: &State, call: &Call) -> Vec<Step> {
        let ends = |had_effect| {
            let verdicts = verdicts(self.jobs[call.job], had_effect);
            verdicts.iter().map(|verdict| Step::End(ending(*verdict)))
        };
        match &call.at {
            At::Seen(row) if self.asks_first() && self.verdict(row, call.job) == Verdict::Ask => {
                if state.lives[call.key].effects == 0 { vec![Step::Ask { knows: true }] } else { Vec::new() }
            }
            At::Absent | At::Seen(_) | At::Answered(_) | At::Recording { .. } | At::Unsure(_) => {
                vec![Step::Send]
            }
            At::Asking(_) => {
                vec![Step::Ask { knows: true }, Step::Ask { knows: false }, Step::End(End::Held)]
            }
            At::Held(_) => {
                let mut steps = vec![Step::Effect, Step::End(End::Withdrawn)];
                steps.extend(ends(false));
                steps
            }
            At::Did(_) => {
                let mut steps = vec![Step::End(End::Completed)];
                steps.extend(ends(true));
                steps
            }
            At::Clear => {
                let mut steps = vec![Step::Effect];
                steps.extend(ends(false));
                steps
            }
        }
    }

    fn asks_first(&self) -> bool {
        self.mutant == Some(Mutant::AsksBeforeItClaims)
    }

    /// The write that a step sends.
    pub(crate) fn write(&self, call: &mut Call, step: Step) -> Option<Write> {
        match (call.at.clone(), step) {
            (At::Absent, Step::Send) => Some(Write::Claim { owner: call.next_owner() }),
            (At::Seen(seen) | At::Answered(seen), Step::Send) => Some(match self.verdict(&seen, call.job) {
                Verdict::Flag => Write::Flag { seen },
                _ => Write::Take { owner: call.next_owner(), seen },
            }),
            (At::Recording { over, completes }, Step::Send) => {
                Some(Write::Record { owner: call.next_owner(), over, completes })
            }
            (At::Unsure(write), Step::Send) => Some(write),
            (At::Asking(of) | At::Held(of) | At::Did(of), Step::End(end)) => Some(Write::Finish { of, end }),
            _ => None,
        }
    }

    /// A step that sends nothing.
    pub(crate) fn act(&self, state: &mut State, call: &Call, step: Step) -> Option<At> {
        Some(match (&call.at, step) {
            (At::Held(of), Step::Effect) => {
                self.effect(state, call, Some(*of));
                At::Did(*of)
            }
            (At::Clear, Step::Effect) => {
                self.effect(state, call, None);
                At::Recording { over: None, completes: true }
            }
            (At::Clear, Step::End(_)) => At::Recording { over: None, completes: false },
            (At::Seen(row), Step::Ask { .. }) => At::Answered(row.clone()),
            (At::Asking(of), Step::Ask { knows: true }) if state.lives[call.key].effects == 0 => {
                At::Held(*of)
            }
            (At::Asking(of), Step::Ask { knows: true }) => {
                At::Unsure(Write::Finish { of: *of, end: End::Happened })
            }
            (At::Asking(of), Step::Ask { knows: false }) => At::Unsure(Write::Review { of: *of }),
            _ => return None,
        })
    }

    /// What a call makes of the answer to a write.
    pub(crate) fn hear(&self, state: &mut State, call: &Call, write: Write, heard: Heard) -> Next {
        match (write, heard) {
            (Write::Claim { owner }, Heard::Written { fence }) => {
                Next::At(At::Held(granted(state, call, owner, fence)))
            }
            (Write::Take { owner, seen }, Heard::Written { fence }) => {
                let of = granted(state, call, owner, fence);
                let asks = self.verdict(&seen, call.job) == Verdict::Ask && !self.asks_first();
                Next::At(if asks { At::Asking(of) } else { At::Held(of) })
            }
            (Write::Claim { .. } | Write::Take { .. } | Write::Flag { .. }, heard) => match heard {
                Heard::Found(row) => self.meet(state, call, row),
                Heard::Gone if call.looks < LOOKS => Next::At(At::Absent),
                Heard::Gone => Next::Answers(Told::Busy),
                _ => Next::Answers(Told::Review),
            },
            (Write::Finish { of, end }, Heard::Written { .. }) => match end {
                End::Completed | End::Happened => {
                    state.accepted(call.key, of);
                    state.acknowledge(call.key, &result(of, end));
                    Next::Answers(Told::Done)
                }
                _ => Next::Answers(Told::Error),
            },
            (Write::Finish { .. }, _) => Next::Answers(Told::Error),
            (Write::Review { .. }, Heard::Written { .. }) => Next::Answers(Told::Review),
            (Write::Review { .. } | Write::Renew { .. } | Write::Decide { .. }, _) => {
                Next::Answers(Told::Error)
            }
            (Write::Record { owner, completes, .. }, heard) => {
                self.recorded(state, call, owner, completes, heard)
            }
        }
    }

    fn recorded(&self, state: &mut State, call: &Call, owner: u8, completes: bool, heard: Heard) -> Next {
        let over = match heard {
            Heard::Found(row) if self.gives_way(&row, call.job, completes) => Some(row),
            Heard::Gone => None,
            _ if completes => {
                state.acknowledge(call.key, &result_of(owner));
                return Next::Answers(Told::Done);
            }
            _ => return Next::Answers(Told::Error),
        };
        if call.looks < LOOKS {
            Next::At(At::Recording { over, completes })
        } else {
            Next::Answers(Told::Error)
        }
    }

    /// What a call does about a row that it meets.
    pub(crate) fn meet(&self, state: &mut State, call: &Call, row: Row) -> Next {
        let mode = self.jobs[call.job].mode();
        match self.verdict(&row, call.job) {
            Verdict::Run(_) if mode == Mode::RecordAfter => Next::At(self.clear()),
            Verdict::Run(_) | Verdict::Ask | Verdict::Flag if call.looks >= LOOKS => {
                Next::Answers(Told::Busy)
            }
            Verdict::Ask if matches!(call.at, At::Answered(_)) => Next::At(At::Answered(row)),
            Verdict::Run(_) | Verdict::Ask | Verdict::Flag => Next::At(At::Seen(row)),
            Verdict::Replay => {
                state.acknowledge(call.key, row.result.as_deref().unwrap_or_default());
                Next::Answers(Told::Done)
            }
            Verdict::Busy if self.mutant == Some(Mutant::AcknowledgesABusyKey) => {
                state.acknowledge(call.key, row.owner.as_deref().unwrap_or_default());
                Next::Answers(Told::Done)
            }
            Verdict::Busy => Next::Answers(Told::Busy),
            Verdict::Review => Next::Answers(Told::Review),
            Verdict::Failed => Next::Answers(Told::Failed),
        }
    }

    /// Where a `record_after` call stands that nothing keeps from running.
    pub(crate) fn clear(&self) -> At {
        if self.mutant == Some(Mutant::RecordsBefore) {
            At::Recording { over: None, completes: true }
        } else {
            At::Clear
        }
    }
}

fn granted(state: &State, call: &Call, owner: u8, fence: i64) -> Execution {
    Execution { owner, fence, life: state.lives[call.key].number }
}

fn ending(verdict: OnError) -> End {
    match verdict {
        OnError::Hold => End::Held,
        OnError::Release => End::Released,
        OnError::Record => End::Failed,
    }
}

fn result(of: Execution, end: End) -> String {
    if end == End::Happened { FOUND_BY_THE_PROBE.to_owned() } else { result_of(of.owner) }
}
