//! The rows of orders' phases, as they are in the end.

use std::collections::BTreeMap;

use idem_runtime::{Idem, Status};

use crate::{
    book::Phase,
    history::History,
    key::{Key, Kind},
};

/// A row of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PhaseRow {
    pub(crate) phase: Phase,
    pub(crate) status: Status,
    /// The delivery whose result it is, or a person's word.
    pub(crate) value: Option<u64>,
}

/// The rows of each order.
pub(crate) async fn read(url: &str, history: &History) -> BTreeMap<Key, Vec<PhaseRow>> {
    let idem = Idem::connect(url).await.expect("the database, when nobody harms it any more");
    let mut orders = BTreeMap::new();
    for key in history.by_key().into_keys().filter(|key| key.kind == Kind::Order) {
        let found = idem.lookup(key.to_string()).await.expect("an answer");
        let rows = found.into_iter().flat_map(|job| job.phases);
        let rows = rows.map(|row| {
            let name = row.phase_name().expect("the row of a phase");
            PhaseRow {
                phase: Phase::ALL.into_iter().find(|phase| phase.name() == name).expect("a phase of ours"),
                value: row.result.as_ref().and_then(|result| result.parse().ok()),
                status: row.status,
            }
        });
        orders.insert(key, rows.collect());
    }
    orders
}
