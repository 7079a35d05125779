//! What there is: the table, the calls, the writes in flight, and how much more may happen.

use idem_tests::table::{Row, Table};

use crate::{
    call::Call,
    life::{Flaw, Life},
    write::Sent,
};

/// The keys of the model.
pub(crate) const KEYS: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) table: Table,
    /// The database's clock.
    pub(crate) now: i64,
    /// The calls under way, by delivery.
    pub(crate) calls: Vec<Call>,
    /// Writes that were sent and have not arrived: their senders get no answer any more.
    pub(crate) late: Vec<Sent>,
    /// Writes that a watcher or a person makes up from a row that they read.
    pub(crate) errands: Vec<Sent>,
    /// The history of each key.
    pub(crate) lives: Vec<Life>,
    /// How much more may happen.
    pub(crate) left: Bound,
    pub(crate) flaw: Option<Flaw>,
}

/// How often each thing may happen at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    /// Deliveries, at any time and to any of the workers.
    pub(crate) deliveries: u8,
    /// Steps of the clock, each of which ends the leases and ttls that run.
    pub(crate) ticks: u8,
    /// Steps of the clock back.
    pub(crate) backs: u8,
    /// Writes whose answer is lost: they arrive whenever they do, or never.
    pub(crate) losses: u8,
    /// What people do.
    pub(crate) deeds: u8,
    /// Looks of a watcher.
    pub(crate) watches: u8,
    /// Whether somebody purges, as often as they like.
    pub(crate) purges: bool,
    /// Whether holders send heartbeats, as often as they like.
    pub(crate) beats: bool,
}

impl State {
    pub(crate) fn new(keys: usize, left: Bound) -> Self {
        Self {
            table: Table::default(),
            now: crate::job::SECOND,
            calls: Vec::new(),
            late: Vec::new(),
            errands: Vec::new(),
            lives: vec![Life::default(); keys],
            left,
            flaw: None,
        }
    }

    pub(crate) fn row(&self, key: usize) -> Option<&Row> {
        self.table.row(KEYS[key])
    }

    /// Notes the first invariant that is broken.
    pub(crate) fn note(&mut self, flaw: Flaw) {
        self.flaw.get_or_insert(flaw);
    }
}

/// Takes one of what is left.
pub(crate) fn spend(left: &mut u8) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}
