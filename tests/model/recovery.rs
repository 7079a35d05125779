//! That no key is wedged: whatever state it is in, workers that live and a person who decides bring it to its end.

use std::{
    collections::{HashMap, HashSet},
    sync::MutexGuard,
};

use idem_tests::table::Table;

use crate::{
    call::{At, Call, Step, Told},
    job::SECOND,
    life::Life,
    person::Deed,
    protocol::Protocol,
    state::{Bound, KEYS, State},
    write::{End, Sent, Write},
};

/// More than enough: a claim ends, the key is reviewed, it runs.
const DELIVERIES: u8 = 6;

/// The tables, at their times, from which every key was found to go on.
pub(crate) type Recovered = HashMap<i64, HashSet<Table>>;

impl Protocol {
    /// Whether from here on a key ends once all that was under way is dead, and faults are over.
    pub(crate) fn goes_on(&self, state: &State) -> bool {
        let known = |recovered: MutexGuard<'_, Recovered>| {
            recovered.get(&state.now).is_some_and(|tables| tables.contains(&state.table))
        };
        if self.recovered.lock().is_ok_and(known) {
            return true;
        }
        let ends = (0..self.keys).all(|key| (0..self.jobs.len()).all(|job| self.ends(state, key, job)));
        if ends && let Ok(mut recovered) = self.recovered.lock() {
            recovered.entry(state.now).or_default().insert(state.table.clone());
        }
        ends
    }

    fn ends(&self, from: &State, key: usize, job: usize) -> bool {
        let left = Bound { deliveries: DELIVERIES, ..Bound::default() };
        let lives = vec![Life::default(); self.keys];
        let mut state = State { table: from.table.clone(), lives, ..State::new(self.keys, left) };
        state.now = from.now;
        for delivery in 0..DELIVERIES {
            state.now += 5 * SECOND;
            match self.deliver(&mut state, key, job, delivery) {
                Told::Done | Told::Failed => return true,
                Told::Review => self.free(&mut state, key),
                Told::Busy | Told::Error => {}
            }
        }
        false
    }

    /// A delivery to a worker to whom nothing happens.
    fn deliver(&self, state: &mut State, key: usize, job: usize, delivery: u8) -> Told {
        state.left.deliveries = self.bound.deliveries.saturating_sub(delivery);
        let mut told = self.begin(state, key, job, false);
        while told.is_none() {
            let Some(call) = state.calls.pop() else { return Told::Error };
            let step = calm(&call);
            told = self.go(state, call, step, false);
        }
        told.unwrap_or(Told::Error)
    }

    /// A person finds out that there was no effect.
    fn free(&self, state: &mut State, key: usize) {
        if let Some(seen) = state.table.read(state.now, KEYS[key])
            && Deed::Retry.is_allowed(&seen, false)
        {
            let write = Write::Decide { seen, deed: Deed::Retry, force: false };
            self.arrive(state, &Sent { key, job: 0, write });
        }
    }
}

/// The step of a call that goes well.
fn calm(call: &Call) -> Step {
    match &call.at {
        At::Held(_) | At::Clear => Step::Effect,
        At::Did(_) => Step::End(End::Completed),
        At::Asking(_) => Step::Ask { knows: true },
        At::Seen(_) | At::Absent | At::Answered(_) | At::Recording { .. } | At::Unsure(_) => Step::Send,
    }
}
