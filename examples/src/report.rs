use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{Balance, Inventory, Tally};

/// How a run ended: what was delivered, and what happened in the outside world.
#[derive(Debug)]
pub struct Report {
    tally: Tally,
    effects: Vec<(&'static str, u64)>,
    distinct_keys: u64,
    kept: bool,
}

impl Report {
    /// A run whose promise is one effect for each key: not two, and not none.
    #[must_use]
    pub fn at_most_once(tally: Tally, effect: &'static str, effects: u64, keys: usize) -> Self {
        Self::new(tally, vec![(effect, effects)], keys, effects == keys as u64)
    }

    /// A run whose promise is an effect for each key: rather two than none.
    #[must_use]
    pub fn at_least_once(tally: Tally, effect: &'static str, effects: u64, keys: usize) -> Self {
        Self::new(tally, vec![(effect, effects)], keys, effects >= keys as u64)
    }

    /// A run whose promise is that the books are right: so many postings, and the same sum as before.
    #[must_use]
    pub fn in_the_books(tally: Tally, before: &Balance, after: &Balance, keys: usize) -> Self {
        let effects = vec![
            ("postings", after.postings),
            ("sum_before", before.sum.unsigned_abs()),
            ("sum_after", after.sum.unsigned_abs()),
        ];
        let kept = after.is_right && after.sum == before.sum && after.postings == 2 * keys as u64;
        Self::new(tally, effects, keys, kept)
    }

    /// A run whose promise is one reservation and one charge for each order, and a mail: rather two than none.
    /// `asked` says how often the provider was asked about a charge.
    #[must_use]
    pub fn of_orders(
        tally: Tally,
        inventory: &Inventory,
        charges: u64,
        asked: u64,
        mails: u64,
        orders: usize,
    ) -> Self {
        let reservations = inventory.reservations;
        let effects =
            vec![("reservations", reservations), ("charges", charges), ("asked", asked), ("mails", mails)];
        let each = orders as u64;
        let kept = inventory.is_right && reservations == each && charges == each && mails >= each;
        Self::new(tally, effects, orders, kept)
    }

    fn new(tally: Tally, effects: Vec<(&'static str, u64)>, keys: usize, kept: bool) -> Self {
        Self { tally, effects, distinct_keys: keys as u64, kept }
    }

    fn lines(&self) -> Vec<(&'static str, u64)> {
        let tally = &self.tally;
        let mut lines = vec![
            ("deliveries", tally.deliveries),
            ("executed", tally.executed),
            ("replayed", tally.replayed),
            ("retried", tally.retried),
            ("refused", tally.refused),
            ("malformed", tally.malformed),
            ("needs_review", tally.needs_review.len() as u64),
        ];
        lines.extend(&self.effects);
        lines.push(("distinct_keys", self.distinct_keys));
        lines
    }

    /// Prints the run to standard output, as a table or as one line of JSON, and what to do to standard error.
    ///
    /// The exit code is 0 if the promise was kept, 1 if it was not or the run was cut short, 3 if a key needs review.
    ///
    /// # Errors
    ///
    /// Standard output is closed.
    pub fn close(&self, json: bool) -> io::Result<ExitCode> {
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
        } else {
            writeln!(out, "{}", self.table())?;
        }
        out.flush()?;
        if let Some(failure) = &self.tally.failure {
            eprintln!("the run was cut short: {failure}");
        }
        if let Some(advice) = self.advice() {
            eprintln!("{advice}");
            return Ok(ExitCode::from(3));
        }
        Ok(if self.kept && self.tally.failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY);
        for (name, count) in self.lines() {
            table.add_row([name.replace('_', " "), count.to_string()]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
        table
    }

    /// What a person does about keys that need review, where there are such.
    fn advice(&self) -> Option<String> {
        let (key, _) = self.tally.needs_review.first_key_value()?;
        let errors: Vec<_> = self.tally.needs_review.values().map(String::as_str).collect();
        Some(format!(
            "{}\n\n\
             Nobody knows whether that effect happened, so the job is not run again. Look whether it did, then say so:\n    \
             idem.resolve(\"{key}\", Resolution::Completed(None)).note(\"it happened\").await?;\n    \
             idem.resolve(\"{key}\", Resolution::Retry).note(\"it did not\").await?;  // then enqueue it again",
            errors.join("\n"),
        ))
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lines = self.lines();
        let mut map = serializer.serialize_map(Some(lines.len()))?;
        for (name, count) in lines {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}

/// The exit code of a run: 1 if it did not come to its report, and why on standard error.
#[must_use]
pub fn exit(run: anyhow::Result<ExitCode>) -> ExitCode {
    run.unwrap_or_else(|error| {
        let mut text = error.to_string();
        for cause in error.chain().skip(1).map(ToString::to_string) {
            // Many errors tell of their cause themselves.
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        eprintln!("error: {text}");
        ExitCode::FAILURE
    })
}
