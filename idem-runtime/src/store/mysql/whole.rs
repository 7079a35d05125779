//! Statements with their values in them, for a caller's transaction.
//!
//! A statement with parameters is prepared first. sqlx loses its place in the server's answers where it is dropped
//! while it prepares, and the caller's own next statement would wait for ever.

use std::fmt::Write as _;

use crate::{
    record::Status,
    store::{
        Finish, Insert, Renew, Replace,
        sql::{FinishParams, NewRowParams, RenewParams, Sql},
    },
};

/// A statement on the way to being whole: the text so far, and what is still to be filled.
struct Whole<'s> {
    text: String,
    rest: &'s str,
}

impl<'s> Whole<'s> {
    fn of(sql: &'s str) -> Self {
        Self { text: String::with_capacity(2 * sql.len()), rest: sql }
    }

    /// The next value.
    fn with(mut self, value: impl Literal) -> Self {
        let (before, after) = self.rest.split_once('?').unwrap_or((self.rest, ""));
        self.text.push_str(before);
        value.write(&mut self.text);
        self.rest = after;
        self
    }

    fn row(self, row: &NewRowParams<'_>) -> Self {
        self.with(row.status)
            .with(row.job.as_deref())
            .with(row.template.as_deref())
            .with(row.mode.as_deref())
            .with(row.on_stale.as_deref())
            .with(row.owner.as_deref())
            .with(i64::from(row.attempt))
            .with(i64::from(row.takeovers))
            .with(row.lease_in)
            .with(row.lease_at)
            .with(row.fingerprint.as_deref())
            .with(row.result.as_deref())
            .with(row.error.as_deref())
            .with(row.worker.as_deref())
            .with(row.expires_in)
            .with(row.expires_at)
            .with(row.alerted_in)
            .with(row.alerted_at)
    }

    fn done(mut self) -> Sql {
        self.text.push_str(self.rest);
        Sql::of(self.text)
    }
}

/// A value that can stand in a statement, whatever the session's modes and character sets.
trait Literal {
    fn write(self, text: &mut String);
}

impl Literal for &str {
    fn write(self, text: &mut String) {
        text.push_str("_utf8mb4 X'");
        for byte in self.bytes() {
            // Into memory it does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\'');
    }
}

impl Literal for i64 {
    fn write(self, text: &mut String) {
        let _ = write!(text, "{self}");
    }
}

impl Literal for bool {
    fn write(self, text: &mut String) {
        text.push_str(if self { "TRUE" } else { "FALSE" });
    }
}

impl<T: Literal> Literal for Option<T> {
    fn write(self, text: &mut String) {
        match self {
            Some(value) => value.write(text),
            None => text.push_str("NULL"),
        }
    }
}

/// A statement about one key.
pub(super) fn of_key(sql: &str, key: &str) -> Sql {
    Whole::of(sql).with(key).done()
}

pub(super) fn insert(sql: &str, insert: &Insert, floor: i64) -> Sql {
    let row = NewRowParams::of(&insert.key, &insert.row);
    let completes = insert.row.status == Status::Completed;
    Whole::of(sql).with(row.key).row(&row).with(floor).with(completes).done()
}

pub(super) fn lift(sql: &str, insert: &Insert, fence: i64, floor: i64) -> Sql {
    Whole::of(sql).with(floor).with(&*insert.key).with(insert.row.owner.as_deref()).with(fence).done()
}

pub(super) fn replace(sql: &str, replace: &Replace) -> Sql {
    let row = NewRowParams::of(&replace.key, &replace.row);
    let expected = &replace.expected;
    Whole::of(sql)
        .row(&row)
        .with(replace.raise_fence)
        .with(replace.row.status == Status::Completed)
        .with(row.key)
        .with(expected.status.as_str())
        .with(expected.owner.as_deref())
        .with(expected.fence)
        .with(expected.lease_until)
        .with(expected.created_at)
        .done()
}

/// What counts under a claim that a person released ends with it, and is nobody's to renew here.
pub(super) fn stands(sql: &str, job: &Renew) -> Sql {
    let job = RenewParams::of(job);
    Whole::of(sql).with(job.lease).with(job.key).with(job.owner).with(job.fence).with(false).done()
}

pub(super) fn finish(sql: &str, finish: &Finish) -> Sql {
    let ending = FinishParams::of(finish);
    let completes = finish.ending.status() == Status::Completed;
    let holds = finish.ending.status() == Status::Processing;
    Whole::of(sql)
        .with(ending.status)
        .with(completes)
        .with(ending.result.as_deref())
        .with(ending.error.as_deref())
        .with(holds)
        .with(holds)
        .with(ending.expires_in)
        .with(i64::from(finish.ending.raises_fence()))
        .with(i64::from(ending.withdrawn))
        .with(completes)
        .with(ending.key)
        .with(ending.owner)
        .with(ending.fence)
        .with(completes)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stands_for_itself_whatever_is_in_it() {
        let whole = Whole::of("a = ? AND b = ? AND c = ? AND d = ?").with("?'\\é").with(None::<i64>);
        let whole = whole.with(-5_i64).with(true).done();
        assert_eq!(whole.as_str(), "a = _utf8mb4 X'3f275cc3a9' AND b = NULL AND c = -5 AND d = TRUE");
    }
}
