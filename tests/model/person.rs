//! A person, who reads a row and decides about it: what `idem.resolve` and `idem.forget` do.

use std::sync::Arc;

use idem_runtime::{
    Status,
    store::{Moment, NewRow, Replace},
};
use idem_tests::table::{Row, Table};

use crate::{
    job::{FOREIGN_STALE_AFTER, RELEASED_FOR},
    write::{Heard, SAID_BY_A_PERSON, heard},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    Complete,
    Retry,
    Fail,
    Forget,
}

impl Deed {
    pub(crate) const ALL: &[Self] = &[Self::Complete, Self::Retry, Self::Fail, Self::Forget];

    fn status(self) -> Option<Status> {
        match self {
            Self::Complete => Some(Status::Completed),
            Self::Retry => Some(Status::Released),
            Self::Fail => Some(Status::Failed),
            Self::Forget => None,
        }
    }

    /// Whether a row as it was read lets the deed be done.
    pub(crate) fn is_allowed(self, seen: &Row, force: bool) -> bool {
        let refused = match &seen.status {
            Status::Processing | Status::NeedsReview if is_alive(seen) => true,
            Status::Completed | Status::Other(_) => true,
            status => self.status().as_ref() == Some(status),
        };
        force || !refused
    }

    /// Whether the holder is fenced off.
    pub(crate) fn raises_fence(seen: &Row, force: bool) -> bool {
        is_alive(seen) || (force && seen.status != Status::NeedsReview)
    }

    /// The write of it.
    pub(crate) fn done(self, table: &mut Table, now: i64, key: &Arc<str>, seen: &Row, force: bool) -> Heard {
        let Some(status) = self.status() else {
            let forgotten = table.forget(key, &seen.version());
            return if forgotten { Heard::Written { fence: seen.fence } } else { Heard::Gone };
        };
        let expires = match status {
            Status::Released if seen.is_phase() || table.has_phases(key) => Moment::Never,
            Status::Released => Moment::In(RELEASED_FOR),
            _ => Moment::Never,
        };
        let result = (self == Self::Complete).then(|| SAID_BY_A_PERSON.to_owned());
        let replace = Replace {
            key: key.clone(),
            expected: seen.version(),
            row: NewRow { status, lease: Moment::Never, expires, result, ..seen.again() },
            raise_fence: Self::raises_fence(seen, force),
            renew_birth: false,
            audit: None,
        };
        heard(table.replace(now, &replace).answer)
    }
}

fn is_alive(seen: &Row) -> bool {
    seen.is_alive(seen.now, FOREIGN_STALE_AFTER)
}
