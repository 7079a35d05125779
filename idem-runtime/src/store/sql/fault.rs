//! What an error of the driver means: for trying again, and for the connection it came over.

use std::future::{Future, ready};

use sqlx::{Database, error::DatabaseError};

use crate::store::{ErrorClass, StoreError};

/// What differs between databases in their names and their errors.
pub(crate) trait Dialect: Database {
    /// What stands around a name.
    const QUOTE: char;

    /// What an error of the database's own means.
    fn fault(error: &dyn DatabaseError) -> Fault;

    /// Makes a new connection fit for use, whatever the server is set to.
    fn greet(_: &mut Self::Connection) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        ready(Ok(()))
    }
}

/// What an error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It collided with another statement and changed nothing: at once again.
    Collision,
    /// The same over the same connection may succeed later.
    Busy,
    /// A foreign transaction holds a row.
    Locked,
    /// This connection is of no use any more; another one may be.
    Connection,
    /// It will be refused again.
    Refused,
}

impl Fault {
    pub(crate) fn of<DB: Dialect>(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => DB::fault(&**error),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => Self::Connection,
            _ => Self::Refused,
        }
    }

    pub(crate) fn class(self) -> ErrorClass {
        match self {
            Self::Collision | Self::Busy | Self::Connection => ErrorClass::Transient,
            Self::Locked => ErrorClass::Locked,
            Self::Refused => ErrorClass::Permanent,
        }
    }
}

/// An error with a text of our own.
pub(crate) fn permanent(context: &'static str, message: String) -> StoreError {
    StoreError::new(ErrorClass::Permanent, context, message)
}

/// A row that others change faster than it can be read.
pub(crate) fn restless(context: &'static str) -> StoreError {
    StoreError::new(ErrorClass::Transient, context, "a row changed again and again before it could be read")
}
