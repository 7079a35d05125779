use std::{collections::BTreeMap, fmt};

use crate::{
    clock,
    delivery::{Delivery, End},
    key::Key,
    plan::{Ending, Harm},
};

/// What happened, in its order.
#[derive(Debug, Default)]
pub(crate) struct History {
    begun: u64,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) event: Event,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Sent {
        delivery: Delivery,
        worker: usize,
        pid: u32,
    },
    Answered {
        key: Key,
        delivery: u64,
        end: End,
    },
    /// The worker is dead: nobody will answer.
    Unanswered {
        key: Key,
        delivery: u64,
    },
    /// A person looked, and said so.
    Judged {
        key: Key,
        about: About,
        verdict: Verdict,
        became: Became,
    },
    Started {
        worker: usize,
        pid: u32,
    },
    /// It works, and its clock is so many seconds ahead.
    Ready {
        worker: usize,
        ahead: i64,
    },
    Harmed {
        worker: usize,
        pid: u32,
        harm: Harm,
    },
    /// It is over.
    Healed {
        worker: usize,
        pid: u32,
    },
    /// The server was told to end, or began again.
    ServerEnds(Ending),
    ServerIsBack,
    /// From here on nothing is done to anybody.
    Peace,
}

/// What a person spoke of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Job,
    /// The charge of an order.
    Charge,
}

/// What a person found in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The effect is there; repeats get this value.
    Happened(u64),
    /// There is none: free.
    DidNot,
}

/// What became of a person's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    Changed,
    /// By force, and a completion of before counts no more.
    Overruled,
    /// It may have been written.
    Unknown(String),
    Refused(String),
}

impl History {
    pub(crate) fn begin() -> History {
        History { begun: clock::now(), entries: Vec::new() }
    }

    pub(crate) fn of(entries: Vec<Entry>) -> History {
        History { begun: 0, entries }
    }

    pub(crate) fn note(&mut self, event: Event) {
        self.entries.push(Entry { at: clock::now(), event });
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Milliseconds since it began.
    pub(crate) fn since_begin(&self, at: u64) -> f64 {
        let micros = u32::try_from(at.saturating_sub(self.begun)).unwrap_or(u32::MAX);
        f64::from(micros) / 1_000.0
    }

    /// The entries of each key.
    pub(crate) fn by_key(&self) -> BTreeMap<Key, Vec<&Entry>> {
        let mut keys: BTreeMap<Key, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            if let Some(key) = entry.event.key() {
                keys.entry(key).or_default().push(entry);
            }
        }
        keys
    }

    /// What happened to a key, and to everybody meanwhile.
    pub(crate) fn around<'a>(&'a self, of_key: &[&'a Entry]) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let key = of_key.first().and_then(|entry| entry.event.key());
        let span = of_key.first().map_or(1, |first| first.at)..=of_key.last().map_or(0, |last| last.at);
        self.entries.iter().filter(move |entry| match entry.event.key() {
            None => span.contains(&entry.at),
            some => some == key,
        })
    }
}

impl Event {
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Event::Sent { delivery, .. } => Some(delivery.key),
            Event::Answered { key, .. } | Event::Unanswered { key, .. } | Event::Judged { key, .. } => {
                Some(*key)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Sent { delivery, worker, pid } => {
                let Delivery { id, before, after, fate, .. } = delivery;
                write!(f, "#{id} to worker {worker} (pid {pid}): {before} ms, effect, {after} ms, {fate:?}")
            }
            Event::Answered { delivery, end, .. } => write!(f, "#{delivery} answered: {end}"),
            Event::Unanswered { delivery, .. } => write!(f, "#{delivery} is lost with its worker"),
            Event::Judged { about, verdict, became, .. } => {
                write!(f, "a person says of the {about:?} {verdict:?}: {became:?}")
            }
            Event::Started { worker, pid } => write!(f, "- worker {worker} starts (pid {pid})"),
            Event::Ready { worker, ahead } => write!(f, "- worker {worker} works, its clock {ahead} s ahead"),
            Event::Harmed { worker, pid, harm } => write!(f, "- worker {worker} (pid {pid}): {harm:?}"),
            Event::Healed { worker, pid } => write!(f, "- worker {worker} (pid {pid}) goes on"),
            Event::ServerEnds(ending) => write!(f, "- the server ends ({ending:?})"),
            Event::ServerIsBack => f.write_str("- the server is back"),
            Event::Peace => f.write_str("- from here on nothing is done to anybody"),
        }
    }
}
