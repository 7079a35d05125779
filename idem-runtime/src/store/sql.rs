//! What the SQL dialects share: names, connections, what errors mean, and how a row is read.

mod batch;
mod cells;
mod connections;
mod fault;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
mod json;
mod params;
mod phase;
pub(crate) mod savepoint;
mod shape;
mod table;

use std::{borrow::Cow, time::Duration};

#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use self::connections::Held;
#[cfg(feature = "mysql")]
pub(crate) use self::json::documents;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use self::json::to_json;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use self::params::{bind_claim, bind_finish};
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use self::phase::Outcome;
#[cfg(feature = "postgres")]
pub(crate) use self::phase::unwritten;
pub(crate) use self::{
    batch::Batch,
    cells::{Cells, audited, record},
    connections::{Connections, explain},
    fault::{Dialect, Fault, permanent, restless},
    params::{FinishParams, NewRowParams, RenewParams, bind_audit, bind_expected, bind_row},
    shape::{Column, Found, Shape, missing},
    table::{Sql, Table},
};
use crate::{
    record::{Record, micros},
    store::{Answer, Finish, Replace, StoreError},
};

/// How often a statement is sent again where the database says that it collided with another.
pub(crate) const ATTEMPTS: usize = 8;

/// A text as every database can hold it: without NUL.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// The same, where there may be none.
pub(crate) fn optional(value: Option<&String>) -> Option<Cow<'_, str>> {
    value.map(|value| text(value))
}

/// A wait in microseconds that can be added to any present time.
pub(crate) fn wait(duration: Duration) -> i64 {
    micros(duration).min(i64::MAX / 2)
}

/// The rows that can be read. One that cannot, a foreign worker's, must not hide the others from a watcher.
pub(crate) fn readable(rows: impl Iterator<Item = Result<Record, StoreError>>) -> Vec<Record> {
    let told = |error: &StoreError| tracing::warn!(%error, "a row cannot be read, and is not watched");
    rows.filter_map(|row| row.inspect_err(told).ok()).collect()
}

/// What a replacement that changed nothing answers by the row as it is; nothing where the row has come to be as
/// expected.
pub(crate) fn unreplaced(replace: &Replace, found: Option<Record>) -> Option<Answer> {
    let Some(record) = found else { return Some(Answer::Gone) };
    if record.version() == replace.expected {
        None
    } else if replace.made(&record) {
        Some(Answer::Written { fence: record.fence })
    } else {
        Some(Answer::Found(Box::new(record)))
    }
}

/// What an ending that changed nothing answers by the row as it is; nothing where the row has come to be as expected.
pub(crate) fn unfinished(finish: &Finish, found: Option<Record>) -> Option<Answer> {
    let Some(record) = found else { return Some(Answer::Gone) };
    if record.is_of(&finish.owner, finish.fence) && finish.ending.expects().contains(&record.status) {
        None
    } else if finish.shows_in(&record) {
        Some(Answer::Written { fence: record.fence })
    } else {
        Some(Answer::Found(Box::new(record)))
    }
}
