//! The table as a caller's own open transaction sees and changes it.

use std::{error::Error as StdError, future::Future, pin::Pin, time::Duration};

use crate::{
    record::Record,
    store::{Answer, Finish, Insert, Renew, Replace, StoreError},
};

/// What one step inside a transaction comes to.
pub(crate) type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, Halt>> + Send + 'a>>;

/// A wait for whoever only renews a lease.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) const BRIEF: Duration = Duration::from_millis(50);

type Source = Box<dyn StdError + Send + Sync>;

/// Why a step inside a transaction came to nothing.
#[derive(Debug)]
pub enum Halt {
    /// Another transaction held the row for longer than the step was to wait.
    Locked,
    /// No transaction is open on the connection.
    Outside,
    /// Only the whole transaction can be tried again.
    Conflict(Source),
    /// An earlier statement failed: the transaction takes nothing but a rollback, if only to a savepoint.
    Aborted(Source),
    /// There is no transaction any more.
    Lost(Source),
    /// It will be refused again.
    Refused(StoreError),
}

/// The savepoint around one execution, for whoever has to undo it.
#[derive(Debug, Default)]
pub struct Savepoint {
    /// How deep it is, as sqlx counts, for as long as it is open.
    pub level: Option<usize>,
    /// Its end is under way.
    pub is_ending: bool,
    /// A setting of the caller's that is put back after a step has changed it.
    pub setting: Option<String>,
}

/// The rows of the table, in an open transaction that is not ours. A step that is dropped half way leaves the
/// transaction so that the savepoint can still be rolled back.
pub trait Transaction: Send {
    /// Whether the savepoint is still open. sqlx undoes it where one inside of it could not be begun.
    fn is_open(&self) -> bool;

    /// Whether an insert locks the row that is there, until the caller's transaction ends.
    fn locks_what_it_meets(&self) -> bool {
        false
    }

    /// Opens the savepoint.
    fn begin(&mut self) -> Step<'_, ()>;

    /// Keeps what was done since the savepoint, for the caller to commit.
    fn release(&mut self) -> Step<'_, ()>;

    /// Undoes what was done since the savepoint. The transaction can be used again afterwards, unless this fails.
    fn roll_back(&mut self) -> Step<'_, ()>;

    /// Inserts a row where the key is absent; reads the row that is there. Waits so long for another transaction that
    /// is about to insert it.
    fn insert<'a>(&'a mut self, insert: &'a Insert, wait: Duration) -> Step<'a, Answer>;

    /// Replaces a row if it still is in the expected version; reads it otherwise. Waits so long for another
    /// transaction that has changed it.
    fn replace<'a>(&'a mut self, replacement: &'a Replace, wait: Duration) -> Step<'a, Answer>;

    /// Ends an execution that began in this transaction.
    fn finish<'a>(&'a mut self, finish: &'a Finish) -> Step<'a, Answer>;

    /// Renews the lease of a job's claim if its row carries that and is `processing` or `needs_review`; whether it does. Where
    /// it does, nobody takes the job over until this transaction ends. Waits no longer than 50 ms for another transaction
    /// that holds the row, or as briefly as the database can.
    fn stands<'a>(&'a mut self, job: &'a Renew) -> Step<'a, bool>;

    /// Reads a row.
    fn read<'a>(&'a mut self, key: &'a str) -> Step<'a, Option<Record>>;
}
