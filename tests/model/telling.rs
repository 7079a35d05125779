//! Telling a person of a key that needs review: at least once if a teller lives, and once if none dies.
//!
//! It begins with a stale claim of policy alert. Watchers (a call that meets the claim does as they do) turn it over for
//! review by a write that names the version they saw; who changed the row calls the hook, and then marks the row as told.
//! A row that stays unmarked and unchanged for long is told again by whoever first moves its lease on by a microsecond,
//! which makes it another version for all others. A living teller moves it on as well while its hook runs, and with its
//! mark.
//!
//! Time is in rounds: in each, every living teller writes at least once, and patience is a number of them.

mod bites;
mod holds;
mod watcher;

use std::sync::Arc;

use idem_runtime::{
    Status,
    store::{Ending, Finish, Insert, Moment, Renew, Replace},
};
use idem_tests::table::{Done, Row, Table};
use stateright::{Model, Property};

use self::watcher::{At, Watcher};
use crate::{
    job::{self, SECOND},
    person::Deed,
    write::{claim, restated, result_of},
};

const KEY: &str = "a";
const HOLDER: u8 = 1;
/// The claim has been stale for a while.
const NOW: i64 = 9 * SECOND;

/// The protocol, its bound, and what is broken in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Telling {
    watchers: usize,
    bound: Bound,
    mutant: Option<Mutant>,
}

/// How often each thing may happen at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bound {
    rounds: u8,
    deaths: u8,
    /// Heartbeats of the holder, who was silent for a while and goes on.
    beats: u8,
    /// Writes whose answer is lost.
    losses: u8,
    /// Whether the holder may complete, and a person decide.
    ends: bool,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// Who finds the row flagged as it was to be flagged rings, too.
    RingsWhereItIsFlagged,
    /// Who lost patience rings without a write that it wins.
    RetellsUnasked,
    /// The mark is set before the hook is called.
    MarksFirst,
    /// A mark that meets a heartbeat is given up.
    MarksOnce,
    /// A teller does nothing for the row while its hook runs.
    RingsInSilence,
    /// The mark leaves the row in the version that others saw.
    MarksInPlace,
    /// Nobody tells again.
    NeverRetells,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    table: Table,
    watchers: Vec<Watcher>,
    round: u8,
    left: Bound,
    /// How often a person was told, up to a bound.
    told: u8,
    /// The deaths that excuse another telling: of tellers.
    excuses: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// A watcher reads the row.
    Look(usize),
    /// It does what comes next; where the answer is lost, what it wrote stands.
    Go {
        watcher: usize,
        lost: bool,
    },
    /// While its hook runs, it moves the row on.
    MoveOn(usize),
    Die(usize),
    Round,
    Beat,
    Complete,
    Resolve,
}

impl State {
    fn row(&self) -> Option<Row> {
        self.table.read(NOW, KEY)
    }

    /// Whether a person has to be told.
    fn is_open(&self) -> bool {
        self.row().is_some_and(|row| is_untold(&row) || is_stale(&row))
    }

    fn replace(&mut self, replace: &Replace) -> Done {
        self.table.replace(NOW, replace)
    }
}

/// A row under review of which nobody was told yet, as far as it says.
fn is_untold(row: &Row) -> bool {
    row.status == Status::NeedsReview && row.alerted_at.is_none()
}

fn is_stale(row: &Row) -> bool {
    row.status == Status::Processing && row.lease_until.is_some_and(|end| end <= row.now)
}

/// The row under review, moved on by the least there is.
fn moved_on(row: &Row) -> Replace {
    let mut replace = restated(&Arc::from(KEY), row, Status::NeedsReview);
    replace.row.lease = Moment::At(row.lease_until.unwrap_or(0) + 1);
    replace
}

/// The row under review, moved on, as one of which a person was told.
fn marked(row: &Row) -> Replace {
    let mut replace = moved_on(row);
    replace.row.alerted = Moment::In(std::time::Duration::ZERO);
    replace
}

impl Model for Telling {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut table = Table::default();
        table.insert(SECOND, &Insert { key: KEY.into(), row: claim(&job::ALERT, HOLDER, 1, 0) });
        let watchers = vec![Watcher::default(); self.watchers];
        vec![State { table, watchers, round: 0, left: self.bound, told: 0, excuses: 0 }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (watcher, it) in state.watchers.iter().enumerate() {
            match &it.at {
                At::Dead => continue,
                At::Idle | At::Waiting { .. } => actions.push(Action::Look(watcher)),
                _ => {}
            }
            if self.can_go(state, it) {
                actions.push(Action::Go { watcher, lost: false });
                if state.left.losses > 0 && !matches!(it.at, At::Ringing(_)) {
                    actions.push(Action::Go { watcher, lost: true });
                }
            }
            if matches!(it.at, At::Ringing(_)) && !it.wrote && self.mutant != Some(Mutant::RingsInSilence) {
                actions.push(Action::MoveOn(watcher));
            }
            if state.left.deaths > 0 {
                actions.push(Action::Die(watcher));
            }
        }
        let wrote =
            |it: &Watcher| !it.is_telling() || it.wrote || self.mutant == Some(Mutant::RingsInSilence);
        if state.left.rounds > 0 && state.watchers.iter().all(wrote) {
            actions.push(Action::Round);
        }
        if state.left.beats > 0 {
            actions.push(Action::Beat);
        }
        if state.left.ends {
            actions.extend([Action::Complete, Action::Resolve]);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let fence = last.row().map_or(0, |row| row.fence);
        match action {
            Action::Look(watcher) => state.look(watcher),
            Action::Go { watcher, lost } => {
                self.go(&mut state, watcher, lost);
                state.left.losses -= u8::from(lost);
            }
            Action::MoveOn(watcher) => state.move_on(watcher),
            Action::Die(watcher) => {
                state.excuses += u8::from(state.watchers[watcher].is_telling());
                state.watchers[watcher] = Watcher { at: At::Dead, wrote: false };
                state.left.deaths -= 1;
            }
            Action::Round => {
                state.round += 1;
                state.left.rounds -= 1;
                state.watchers.iter_mut().for_each(|it| it.wrote = false);
            }
            Action::Beat => {
                state.left.beats -= 1;
                // The clock has gone on by a little each time.
                let now = NOW + 100 * i64::from(self.bound.beats - state.left.beats);
                let renew =
                    Renew { key: KEY.into(), owner: result_of(HOLDER), fence, lease: job::ALERT.lease() };
                state.table.renew(now, &renew);
            }
            Action::Complete => {
                state.left.ends = false;
                let ending = Ending::Completed { result: None, ttl: None };
                let finish = Finish { key: KEY.into(), owner: result_of(HOLDER), fence, ending };
                state.table.finish(NOW, &finish);
            }
            Action::Resolve => {
                let seen = state.row()?;
                state.left.ends = false;
                let mut resolved = restated(&Arc::from(KEY), &seen, Status::Failed);
                resolved.raise_fence = Deed::raises_fence(&seen, true);
                state.replace(&resolved);
            }
        }
        // Watchers are alike.
        state.watchers.sort();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_: &Self, state: &State| state.told <= 1 + state.excuses),
            Property::always(TOLD_IF_MARKED, |_: &Self, state: &State| {
                state.told > 0 || state.row().is_none_or(|row| row.alerted_at.is_none())
            }),
            Property::always(AT_LEAST_ONCE, |telling: &Self, state: &State| telling.will_tell(state)),
            Property::sometimes("a person is told", |_: &Self, state: &State| state.told > 0),
            Property::sometimes("the row is marked", |_: &Self, state: &State| {
                state.row().is_some_and(|row| row.alerted_at.is_some())
            }),
        ]
    }
}

const ONCE: &str = "a person is told once, and once more at most for each teller that died";
const TOLD_IF_MARKED: &str = "a row that says that a person was told is right";
const AT_LEAST_ONCE: &str = "while a watcher lives, a person is told or the key does not need them any more";

impl Telling {
    /// Whether from here on a person is told, if nobody dies any more and nobody but the watchers writes.
    fn will_tell(&self, state: &State) -> bool {
        let mut state = state.clone();
        for _ in 0..12 {
            let nobody = state.watchers.iter().all(|it| it.at == At::Dead);
            if nobody || state.told > 0 || !state.is_open() {
                return true;
            }
            for watcher in 0..state.watchers.len() {
                match state.watchers[watcher].at {
                    At::Idle | At::Waiting { .. } => state.look(watcher),
                    _ => {}
                }
                let it = state.watchers[watcher].clone();
                if self.can_go(&state, &it) {
                    self.go(&mut state, watcher, false);
                }
            }
            state.round += 1;
        }
        false
    }
}
