//! What can happen, as the actions of a model.

use std::sync::Mutex;

use idem_runtime::{Job, Mode};
use stateright::{Model, Property};

use crate::{
    call::{At, Call, Next, Step, Told},
    job::{FOREIGN_STALE_AFTER, SECOND},
    life::Flaw,
    mutant::Mutant,
    person::Deed,
    recovery::Recovered,
    sight::Sight,
    state::{Bound, KEYS, State, spend},
    write::{Sent, Write},
};

/// How many workers there are: each is at one delivery at a time.
const WORKERS: usize = 3;

/// The protocol with a configuration: the jobs, the bound, and what is broken in it.
#[derive(Debug)]
pub(crate) struct Protocol {
    pub(crate) jobs: Vec<&'static Job>,
    pub(crate) keys: usize,
    pub(crate) bound: Bound,
    pub(crate) deeds: &'static [Deed],
    /// A lease ends only when the call that held the claim is dead.
    pub(crate) only_the_dead_lapse: bool,
    pub(crate) mutant: Option<Mutant>,
    /// What the configuration must come to, or its invariants hold for want of anything that could break them.
    pub(crate) sights: &'static [Sight],
    pub(crate) recovered: Mutex<Recovered>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// The queue delivers; the worker sends its first request.
    Deliver {
        key: usize,
        job: usize,
        lost: bool,
    },
    /// A call goes on. Where its write is lost, it arrives late or never, and the call has no answer.
    Go {
        delivery: u8,
        step: Step,
        lost: bool,
    },
    /// The process of a call dies, or the call gives up.
    Die {
        delivery: u8,
    },
    /// A heartbeat.
    Beat {
        delivery: u8,
        lost: bool,
    },
    /// A lost write arrives.
    Arrive(usize),
    /// The clock goes on, past the leases and ttls that run.
    Tick,
    /// The clock steps back.
    StepBack,
    Purge,
    /// A watcher finds a stale claim of policy alert.
    Watch {
        key: usize,
    },
    /// A person looks at a key and makes up their mind.
    Look {
        key: usize,
        deed: Deed,
        force: bool,
    },
    /// What a watcher or a person made up from an old look is written.
    Write(usize),
}

impl Protocol {
    pub(crate) fn new(jobs: &[&'static Job], bound: Bound) -> Self {
        Self {
            jobs: jobs.to_vec(),
            keys: 1,
            bound,
            deeds: Deed::ALL,
            only_the_dead_lapse: false,
            mutant: None,
            sights: &[],
            recovered: Mutex::default(),
        }
    }

    fn is_after(&self, job: usize) -> bool {
        self.jobs[job].mode() == Mode::RecordAfter
    }

    /// A new call, and what it does first.
    pub(crate) fn begin(&self, state: &mut State, key: usize, job: usize, lost: bool) -> Option<Told> {
        let delivery = self.bound.deliveries - state.left.deliveries;
        let call = Call { delivery, key, job, looks: 0, at: At::Absent };
        if !self.is_after(job) {
            return self.send(state, call, Step::Send, lost);
        }
        let next = match state.table.read(state.now, KEYS[key]) {
            None => Next::At(self.clear()),
            Some(row) => self.meet(state, &call, row),
        };
        settle(state, &call, next)
    }

    /// A step of a call that was taken out of the state; what the queue is told if that was its last.
    pub(crate) fn go(&self, state: &mut State, call: Call, step: Step, lost: bool) -> Option<Told> {
        match self.act(state, &call, step) {
            Some(at) => settle(state, &call, Next::At(at)),
            None => self.send(state, call, step, lost),
        }
    }

    fn send(&self, state: &mut State, mut call: Call, step: Step, lost: bool) -> Option<Told> {
        let write = self.write(&mut call, step)?;
        let sent = Sent { key: call.key, job: call.job, write: write.clone() };
        if lost {
            state.late.push(sent);
            return settle(state, &call, Next::At(At::Unsure(write)));
        }
        let heard = self.arrive(state, &sent);
        let next = self.hear(state, &call, write, heard);
        settle(state, &call, next)
    }

    /// Whether the leases that run may end.
    fn may_lapse(&self, state: &State) -> bool {
        !self.only_the_dead_lapse || state.calls.iter().all(|call| call.owner().is_none())
    }

    fn call_actions(&self, state: &State, call: &Call, actions: &mut Vec<Action>) {
        let delivery = call.delivery;
        let losses = state.left.losses > 0;
        for step in self.steps(state, call) {
            actions.push(Action::Go { delivery, step, lost: false });
            if losses && self.write(&mut call.clone(), step).is_some() {
                actions.push(Action::Go { delivery, step, lost: true });
            }
        }
        actions.push(Action::Die { delivery });
        if self.bound.beats && call.beats().is_some() {
            actions.push(Action::Beat { delivery, lost: false });
            if losses {
                actions.push(Action::Beat { delivery, lost: true });
            }
        }
    }

    fn others_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (key, name) in KEYS.iter().enumerate().take(self.keys) {
            let Some(row) = state.table.read(state.now, name) else { continue };
            let watched = row.waits_for_review() && row.stale_at(FOREIGN_STALE_AFTER) <= row.now;
            if state.left.watches > 0 && watched {
                actions.push(Action::Watch { key });
            }
            if state.left.deeds > 0 {
                for &deed in self.deeds {
                    if deed.is_allowed(&row, false) {
                        actions.push(Action::Look { key, deed, force: false });
                    }
                    // Where it changes anything.
                    if !deed.is_allowed(&row, false) || Deed::raises_fence(&row, true) {
                        actions.push(Action::Look { key, deed, force: true });
                    }
                }
            }
        }
    }
}

/// Puts a call back where it goes on.
fn settle(state: &mut State, call: &Call, next: Next) -> Option<Told> {
    match next {
        Next::At(at) => {
            let place = state.calls.partition_point(|other| other.delivery < call.delivery);
            state.calls.insert(place, Call { at, ..call.clone() });
            None
        }
        Next::Answers(told) => Some(told),
    }
}

fn take(state: &mut State, delivery: u8) -> Option<Call> {
    let place = state.calls.iter().position(|call| call.delivery == delivery)?;
    Some(state.calls.remove(place))
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.keys, self.bound)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.flaw.is_some() {
            return;
        }
        if state.left.deliveries > 0 && state.calls.len() < WORKERS {
            for (key, job) in (0..self.keys).flat_map(|key| (0..self.jobs.len()).map(move |job| (key, job))) {
                actions.push(Action::Deliver { key, job, lost: false });
                if state.left.losses > 0 && !self.is_after(job) {
                    actions.push(Action::Deliver { key, job, lost: true });
                }
            }
        }
        for call in &state.calls {
            self.call_actions(state, call, actions);
        }
        actions.extend((0..state.late.len()).map(Action::Arrive));
        actions.extend((0..state.errands.len()).map(Action::Write));
        if state.left.ticks > 0 && self.may_lapse(state) {
            actions.push(Action::Tick);
        }
        if state.left.backs > 0 && state.now > SECOND {
            actions.push(Action::StepBack);
        }
        if self.bound.purges {
            actions.push(Action::Purge);
        }
        self.others_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver { key, job, lost } => {
                self.begin(&mut state, key, job, lost);
                spend(&mut state.left.deliveries);
                spend_if(lost, &mut state.left.losses);
            }
            Action::Go { delivery, step, lost } => {
                let call = take(&mut state, delivery)?;
                self.go(&mut state, call, step, lost);
                spend_if(lost, &mut state.left.losses);
            }
            Action::Die { delivery } => {
                take(&mut state, delivery)?;
            }
            Action::Beat { delivery, lost } => {
                let call = state.calls.iter().find(|call| call.delivery == delivery)?;
                let sent = Sent { key: call.key, job: call.job, write: Write::Renew { of: call.beats()? } };
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
            Action::StepBack => {
                spend(&mut state.left.backs);
                state.now -= SECOND;
            }
            Action::Purge => self.purge(&mut state),
            Action::Watch { key } => {
                let seen = state.table.read(state.now, KEYS[key])?;
                spend(&mut state.left.watches);
                state.errands.push(Sent { key, job: 0, write: Write::Flag { seen } });
            }
            Action::Look { key, deed, force } => {
                let seen = state.table.read(state.now, KEYS[key])?;
                spend(&mut state.left.deeds);
                state.errands.push(Sent { key, job: 0, write: Write::Decide { seen, deed, force } });
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
                |_: &Self, state: &State| state.flaw != Some(Flaw::$flaw),
            )),+] };
        }
        let mut properties = never! {
            SecondEffect EffectDespiteAnswer SecondCompletion SilentSuccess FenceShared FenceFell ZombieWrote
            CompletionChanged AlertTakenOver
        };
        properties.extend(self.sights.iter().map(|sight| sight.property()));
        properties.push(Property::always(NEVER_WEDGED, |protocol: &Self, state: &State| {
            state.flaw.is_some() || protocol.goes_on(state)
        }));
        properties
    }
}

pub(crate) const NEVER_WEDGED: &str =
    "from every state the next deliveries, and a person where one is needed, end the key";

impl Protocol {
    fn purge(&self, state: &mut State) {
        let before = state.table.clone();
        for name in state.table.purge(state.now) {
            if let Some(key) = KEYS.iter().position(|known| **known == *name) {
                state.lives[key].ends();
            }
            let last = before.row(&name).map_or(0, |row| row.fence);
            match self.mutant {
                Some(Mutant::PurgesWithTheFences) => state.table.floor = before.floor,
                Some(Mutant::FloorsByTheLastRow) => state.table.floor = last,
                _ => {}
            }
        }
    }
}

fn spend_if(spends: bool, left: &mut u8) {
    if spends {
        spend(left);
    }
}
