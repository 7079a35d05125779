use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A job of [`jobs`](crate::jobs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// `lock_first`, `alert`, `hold`.
    Charge,
    /// The same, with a body that is longer than its lease.
    Report,
    /// `lock_first`, `alert`, `by_mark`.
    Invoice,
    /// `lock_first`, `retry`, and callers that wait.
    Ship,
    /// `lock_first`, `retry`, with a body that is longer than its lease.
    Rebuild,
    /// `lock_first`, `retry`, with errors.
    Notify,
    /// `lock_first`, `retry`, not async.
    Press,
    /// `lock_first`, `probe`: whoever comes next looks in the ledger.
    Transfer,
    /// `lock_first`, `retry`, not async, of three phases before its own effect: a charge under `alert`, a reservation
    /// under `retry`, a receipt that is recorded.
    Order,
    /// `record_after`.
    Mail,
    /// `transactional`.
    Credit,
}

/// What a kind promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// At most one effect, but for what a person frees.
    AtMostOnce,
    /// At least one effect, and one accepted completion.
    AtLeastOnce,
    /// No run when an earlier one's effect is there to be seen, and one completion.
    Asked,
    /// At least one effect, without a claim.
    Recorded,
    /// One row.
    RowOnce,
}

impl Kind {
    pub(crate) const ALL: [Kind; 11] = [
        Kind::Charge,
        Kind::Report,
        Kind::Invoice,
        Kind::Ship,
        Kind::Rebuild,
        Kind::Notify,
        Kind::Press,
        Kind::Transfer,
        Kind::Order,
        Kind::Mail,
        Kind::Credit,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Charge => "charge",
            Kind::Report => "report",
            Kind::Invoice => "invoice",
            Kind::Ship => "ship",
            Kind::Rebuild => "rebuild",
            Kind::Notify => "notify",
            Kind::Press => "press",
            Kind::Transfer => "transfer",
            Kind::Order => "order",
            Kind::Mail => "mail",
            Kind::Credit => "credit",
        }
    }

    pub(crate) fn promise(self) -> Promise {
        match self {
            Kind::Charge | Kind::Report | Kind::Invoice => Promise::AtMostOnce,
            Kind::Ship | Kind::Rebuild | Kind::Notify | Kind::Press | Kind::Order => Promise::AtLeastOnce,
            Kind::Transfer => Promise::Asked,
            Kind::Mail => Promise::Recorded,
            Kind::Credit => Promise::RowOnce,
        }
    }
}

/// A key, as its row has it: `charge:17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) number: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.number)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once(':').and_then(|(name, number)| {
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
            Some(Key { kind, number: number.parse().ok()? })
        });
        parsed.ok_or_else(|| format!("{text:?} is no key of ours"))
    }
}
