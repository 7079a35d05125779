//! A process that watches, and may be the one that tells.

use std::sync::Arc;

use idem_runtime::{Status, record::Version, store::Answer};
use idem_tests::table::Row;

use super::{KEY, Mutant, State, Telling, is_stale, is_untold, marked, moved_on};
use crate::write::restated;

/// For how many rounds a row stays as it is before somebody else tells.
const PATIENCE: u8 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Watcher {
    pub(super) at: At,
    /// As a teller, it wrote in this round.
    pub(super) wrote: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum At {
    #[default]
    Idle,
    /// It saw this stale claim, and will flag it.
    Flagging(Row),
    /// It waits for somebody else to tell of this row, which it saw first in a round.
    Waiting {
        seen: Row,
        since: u8,
    },
    /// Its hook is being called for this row.
    Ringing(Row),
    /// Its hook has returned.
    Marking(Row),
    Dead,
}

/// An order, whichever, so that states that differ in who is who are one.
impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl At {
    fn rank(&self) -> impl Ord {
        let (rank, row, since) = match self {
            Self::Idle => (0, None, 0),
            Self::Flagging(row) => (1, Some(row), 0),
            Self::Waiting { seen, since } => (2, Some(seen), *since),
            Self::Ringing(row) => (3, Some(row), 0),
            Self::Marking(row) => (4, Some(row), 0),
            Self::Dead => (5, None, 0),
        };
        let row = row.map(|row| (row.status.as_str().to_owned(), row.fence, row.lease_until, row.alerted_at));
        (rank, row, since)
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Watcher {
    pub(super) fn is_telling(&self) -> bool {
        matches!(self.at, At::Ringing(_) | At::Marking(_))
    }
}

impl State {
    /// Reads the row, and makes up its mind.
    pub(super) fn look(&mut self, watcher: usize) {
        let Some(row) = self.row() else { return };
        let round = self.round;
        let it = &mut self.watchers[watcher];
        it.at = match std::mem::take(&mut it.at) {
            _ if is_stale(&row) => At::Flagging(row),
            At::Waiting { seen, since } if is_untold(&row) && seen.version() == row.version() => {
                At::Waiting { seen: row, since }
            }
            _ if is_untold(&row) => At::Waiting { seen: row, since: round },
            _ => At::Idle,
        };
    }

    /// Writes for the row that its hook is being called for.
    pub(super) fn move_on(&mut self, watcher: usize) {
        let At::Ringing(row) = self.watchers[watcher].at.clone() else { return };
        let changed = self.replace(&moved_on(&row)).changed;
        let it = &mut self.watchers[watcher];
        it.wrote |= changed;
        if let Some(now) = self.table.read(super::NOW, KEY) {
            it.at = if same(&now.version(), &row.version()) { At::Ringing(now) } else { At::Ringing(row) };
        }
    }
}

impl Telling {
    pub(super) fn can_go(&self, state: &State, it: &Watcher) -> bool {
        match &it.at {
            At::Idle | At::Dead => false,
            At::Flagging(_) | At::Ringing(_) | At::Marking(_) => true,
            At::Waiting { since, .. } => {
                self.mutant != Some(Mutant::NeverRetells) && state.round - since >= PATIENCE
            }
        }
    }

    /// What comes next.
    pub(super) fn go(&self, state: &mut State, watcher: usize, lost: bool) {
        let at = std::mem::take(&mut state.watchers[watcher].at);
        let next = match at {
            At::Flagging(seen) => self.flag(state, &seen, lost),
            At::Waiting { seen, .. } => self.retell(state, seen, lost),
            At::Ringing(row) if self.mutant == Some(Mutant::MarksFirst) => {
                state.replace(&marked(&row));
                At::Marking(row)
            }
            At::Marking(_) if self.mutant == Some(Mutant::MarksFirst) => {
                state.told += 1;
                At::Idle
            }
            At::Ringing(row) => {
                state.told += 1;
                At::Marking(row)
            }
            At::Marking(row) => self.mark(state, &row, lost),
            other => other,
        };
        let it = &mut state.watchers[watcher];
        // Who begins to tell has written; who marks in vain has not.
        it.wrote = match next {
            At::Ringing(_) => true,
            At::Marking(_) => it.wrote,
            _ => false,
        };
        it.at = next;
    }

    fn flag(&self, state: &mut State, seen: &Row, lost: bool) -> At {
        let done = state.replace(&restated(&Arc::from(KEY), seen, Status::NeedsReview));
        let flagged = self.mutant == Some(Mutant::RingsWhereItIsFlagged) && found_flagged(&done.answer);
        let rings = done.changed || flagged;
        match state.row() {
            Some(row) if rings && !lost => At::Ringing(row),
            _ => At::Idle,
        }
    }

    /// Tells again, if it is the one that moves the row on.
    fn retell(&self, state: &mut State, seen: Row, lost: bool) -> At {
        if self.mutant == Some(Mutant::RetellsUnasked) {
            return At::Ringing(seen);
        }
        let done = state.replace(&moved_on(&seen));
        match state.row() {
            Some(row) if done.changed && !lost => At::Ringing(row),
            _ => At::Idle,
        }
    }

    /// Marks the row, or looks what became of it.
    fn mark(&self, state: &mut State, row: &Row, lost: bool) -> At {
        let mut mark = marked(row);
        if self.mutant == Some(Mutant::MarksInPlace) {
            mark.row.lease = row.lease_until.into();
        }
        let done = state.replace(&mark);
        match state.row() {
            Some(row) if lost && is_untold(&row) => At::Marking(row),
            Some(row) if !done.changed && is_untold(&row) && self.mutant != Some(Mutant::MarksOnce) => {
                At::Marking(row)
            }
            _ => At::Idle,
        }
    }
}

fn same(now: &Version, then: &Version) -> bool {
    (&now.status, &now.owner, now.fence) == (&then.status, &then.owner, then.fence)
}

fn found_flagged(answer: &Answer) -> bool {
    matches!(answer, Answer::Found(row) if row.status == Status::NeedsReview)
}
