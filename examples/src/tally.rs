use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of a delivery.
#[derive(Debug, Serialize, Deserialize)]
pub enum Settled {
    /// Its job ran.
    Executed,
    /// It was answered with what an earlier delivery had done.
    Replayed,
    /// Its key waits for a person.
    NeedsReview {
        /// The key.
        key: String,
        /// Why, and what is known.
        error: String,
    },
    /// It was answered with an error, and is not delivered again.
    Refused,
    /// The store did not come back in time; nothing further is delivered.
    Stranded {
        /// What the store said last.
        error: String,
    },
}

/// The deliveries of a run, counted.
#[derive(Debug, Default)]
pub struct Tally {
    /// Lines of the file.
    pub deliveries: u64,
    /// Deliveries whose job ran.
    pub executed: u64,
    /// Deliveries that were answered with a stored result.
    pub replayed: u64,
    /// How often something was delivered again.
    pub retried: u64,
    /// Deliveries that were answered with an error in the end.
    pub refused: u64,
    /// Lines that held no delivery.
    pub malformed: u64,
    /// The keys that need review, and why.
    pub needs_review: BTreeMap<String, String>,
    /// Why the run was cut short.
    pub failure: Option<String>,
}

impl Tally {
    pub(crate) fn settle(&mut self, settled: Settled, retried: u64) {
        self.retried += retried;
        match settled {
            Settled::Executed => self.executed += 1,
            Settled::Replayed => self.replayed += 1,
            Settled::Refused => self.refused += 1,
            Settled::NeedsReview { key, error } => {
                self.refused += 1;
                self.needs_review.insert(key, error);
            }
            Settled::Stranded { error } => {
                self.refused += 1;
                self.failure = Some(error);
            }
        }
    }
}
