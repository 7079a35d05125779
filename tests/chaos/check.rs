//! What was promised, looked for in what happened.

mod laws;
mod phases;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::{
    book::{Book, Line},
    history::{Entry, History},
    key::{Key, Kind},
    order::PhaseRow,
};

/// All that is known of a run.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) history: &'a History,
    pub(crate) book: &'a Book,
    /// The deliveries that wrote a row, by the number of the transactional job.
    pub(crate) rows: &'a BTreeMap<u64, Vec<u64>>,
    /// The rows of the phases of each order.
    pub(crate) orders: &'a BTreeMap<Key, Vec<PhaseRow>>,
    /// Keys that came to no end.
    pub(crate) unclosed: BTreeSet<Key>,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) key: Key,
    pub(crate) law: &'static str,
    pub(crate) what: String,
}

/// Looks at every key.
pub(crate) fn violations(evidence: &Evidence<'_>) -> Vec<Violation> {
    let by_key = evidence.history.by_key();
    let mut found = Vec::new();
    for (key, entries) in &by_key {
        let case = laws::Case::of(*key, entries, evidence);
        found.extend(case.violations().into_iter().map(|(law, what)| Violation { key: *key, law, what }));
    }
    let stray = evidence.book.all().filter(|line| !by_key.contains_key(&line.key));
    found.extend(stray.map(|line| Violation {
        key: line.key,
        law: "an effect belongs to a delivery",
        what: line.to_string(),
    }));
    let unasked = evidence.rows.keys().map(|number| Key { kind: Kind::Credit, number: *number });
    found.extend(unasked.filter(|key| !by_key.contains_key(key)).map(|key| Violation {
        key,
        law: "an effect belongs to a delivery",
        what: "a row".to_owned(),
    }));
    found
}

/// Shows some that broke each promise, and counts the others.
pub(crate) fn print(evidence: &Evidence<'_>, violations: &[Violation]) {
    const SHOWN: usize = 3;
    let mut laws: BTreeMap<&str, usize> = BTreeMap::new();
    for violation in violations {
        let count = laws.entry(violation.law).or_default();
        *count += 1;
        if *count <= SHOWN {
            println!("{}", evidence.explain(violation));
        }
    }
    for (law, count) in laws {
        println!("not kept: {law}: {count} times");
    }
}

impl Evidence<'_> {
    pub(crate) fn begins_of(&self, key: Key) -> &[Line] {
        self.book.begins(key)
    }

    pub(crate) fn phases_of(&self, key: Key) -> &[Line] {
        self.book.phases(key)
    }

    pub(crate) fn phase_rows_of(&self, key: Key) -> &[PhaseRow] {
        self.orders.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn effects_of(&self, key: Key) -> &[Line] {
        self.book.effects(key)
    }

    /// The deliveries whose rows are there.
    pub(crate) fn rows_of(&self, key: Key) -> &[u64] {
        if key.kind == Kind::Credit { self.rows.get(&key.number).map_or(&[], Vec::as_slice) } else { &[] }
    }

    /// A violation with all that happened to its key.
    pub(crate) fn explain(&self, violation: &Violation) -> String {
        let Violation { key, law, what } = violation;
        let mut text = format!("\nVIOLATION {key}: {law}: {what}\n");
        let mut line = |at: u64, what: &dyn std::fmt::Display| {
            let _ = writeln!(text, "  {:>10.1} ms  {what}", self.history.since_begin(at));
        };
        let by_key = self.history.by_key();
        let entries: Vec<&Entry> = by_key.get(key).cloned().unwrap_or_default();
        let mut lines = [self.begins_of(*key), self.effects_of(*key)].concat();
        lines.sort_by_key(|line| line.at);
        let mut lines = lines.into_iter().peekable();
        for entry in self.history.around(&entries) {
            while let Some(next) = lines.next_if(|line| line.at <= entry.at) {
                line(next.at, &format_args!("LEDGER {next}"));
            }
            line(entry.at, &entry.event);
        }
        for next in lines {
            line(next.at, &format_args!("LEDGER {next}"));
        }
        if !self.rows_of(*key).is_empty() {
            let _ = writeln!(text, "  rows by deliveries {:?}", self.rows_of(*key));
        }
        text
    }
}
