//! What there is.

use idem_tests::table::Table;

use super::{history::History, worker::Worker, write::Sent};
use crate::job::SECOND;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) table: Table,
    /// The database's clock.
    pub(super) now: i64,
    /// The workers, by delivery.
    pub(super) workers: Vec<Worker>,
    /// Writes that were sent and have not arrived.
    pub(super) late: Vec<Sent>,
    /// Writes that a watcher or a person makes up from a row that they read.
    pub(super) errands: Vec<Sent>,
    pub(super) history: History,
    /// How much more may happen.
    pub(super) left: Bound,
}

/// How often each thing may happen at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    pub(super) deliveries: u8,
    /// Steps of the clock, each of which ends the leases and ttls that run.
    pub(super) ticks: u8,
    /// Writes whose answer is lost: they arrive whenever they do, or never.
    pub(super) losses: u8,
    /// What people do.
    pub(super) deeds: u8,
    /// Looks of a watcher.
    pub(super) watches: u8,
    /// How often the job's row is deleted by hand.
    pub(super) deletions: u8,
    /// Whether somebody purges, as often as they like.
    pub(super) purges: bool,
    /// Whether holders send heartbeats, as often as they like.
    pub(super) beats: bool,
}

impl State {
    pub(super) fn new(left: Bound) -> Self {
        Self {
            table: Table::default(),
            now: SECOND,
            workers: Vec::new(),
            late: Vec::new(),
            errands: Vec::new(),
            history: History::default(),
            left,
        }
    }

    pub(super) fn put(&mut self, worker: Worker) {
        let place = self.workers.partition_point(|other| other.delivery < worker.delivery);
        self.workers.insert(place, worker);
    }
}

pub(super) fn take(state: &mut State, delivery: u8) -> Option<Worker> {
    let place = state.workers.iter().position(|worker| worker.delivery == delivery)?;
    Some(state.workers.remove(place))
}
