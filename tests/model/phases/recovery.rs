//! That no job is wedged: workers that live, and a person who decides where one is needed, bring it to its end.

use std::{
    collections::{HashMap, HashSet},
    sync::MutexGuard,
};

use idem_tests::table::Table;

use super::{
    Phased,
    job::Part,
    state::{Bound, State},
    worker::{At, Step, Told},
    write::{Sent, Write},
};
use crate::{job::SECOND, person::Deed};

pub(super) const NEVER_WEDGED: &str =
    "from every state the next deliveries, and a person where one is needed, complete the job";

/// More than enough: the job is reviewed, then its charge is, and it runs.
const DELIVERIES: u8 = 8;

/// The tables, at their times, from which the job was found to go on.
pub(super) type Recovered = HashMap<i64, HashSet<Table>>;

impl Phased {
    /// Whether from here on the job ends once all that was under way is dead, and faults are over.
    pub(super) fn goes_on(&self, state: &State) -> bool {
        let known = |recovered: MutexGuard<'_, Recovered>| {
            recovered.get(&state.now).is_some_and(|tables| tables.contains(&state.table))
        };
        if self.recovered.lock().is_ok_and(known) {
            return true;
        }
        let ends = self.ends(state);
        if ends && let Ok(mut recovered) = self.recovered.lock() {
            recovered.entry(state.now).or_default().insert(state.table.clone());
        }
        ends
    }

    fn ends(&self, from: &State) -> bool {
        let mut state = State { table: from.table.clone(), now: from.now, ..State::new(Bound::default()) };
        state.history.lives = vec![super::history::Life::default(); from.history.lives.len()];
        for delivery in 0..DELIVERIES {
            state.now += 5 * SECOND;
            match self.deliver(&mut state, delivery) {
                // A person said that the job failed.
                Told::Done | Told::Failed => return true,
                Told::Review(part) => self.free(&mut state, part),
                Told::Busy | Told::Error => {}
            }
        }
        false
    }

    /// A delivery to a worker to whom nothing happens.
    fn deliver(&self, state: &mut State, delivery: u8) -> Told {
        let mut told = self.begin(state, delivery, false);
        while told.is_none() {
            let Some(worker) = state.workers.pop() else { return Told::Error };
            let step = calm(&worker.at);
            told = self.go(state, worker, step, false);
        }
        told.unwrap_or(Told::Error)
    }

    /// A person finds out that there was no effect.
    fn free(&self, state: &mut State, part: Part) {
        if let Some(seen) = state.table.read(state.now, part.key())
            && Deed::Retry.is_allowed(&seen, false)
        {
            let write = Write::Decide { seen, deed: Deed::Retry, force: false };
            self.arrive(state, &Sent { part, write });
        }
    }
}

/// The step of a worker that goes well, as far as that is up to it.
fn calm(at: &At) -> Step {
    match at {
        At::Begun | At::Before(_) => Step::Look,
        At::Held(_) | At::Clear => Step::Effect,
        At::Over(told) if *told != Told::Done => Step::End(super::write::End::Released),
        _ => Step::Send,
    }
}
