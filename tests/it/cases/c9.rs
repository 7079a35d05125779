//! A database that serializes, and says so by errors: what is sent again is the statement, never the job. Inside of a
//! caller's transaction it is the transaction that begins again, and its caller who says so.

mod lock_first;
mod transactional;

pub(super) use self::{lock_first::*, transactional::*};
