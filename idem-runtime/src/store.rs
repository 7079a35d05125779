//! The store trait and its contract: what a database has to do for the engine.
//!
//! A store compares and sets; it decides nothing. Whether a claim may be taken over stands in
//! [`record::decide`](crate::record::decide) alone. A new back end implements [`Store`] and runs the conformance
//! suite of the workspace's tests against it.
//!
//! # The contract
//!
//! 1. **Atomic, durable, alone.** Each item of a batch is one atomic change of one row. What is reported as written
//!    survives the death of the client and of the server.
//! 2. **Every write names what it expects.** It counts only if it changed its one row; a store never reads first and
//!    writes on the strength of that.
//! 3. **Answers come in the order of the batch**, one for each item. No batch holds one key twice.
//! 4. **Time is the database's clock at the moment of writing**, in every comparison and in every deadline that is
//!    stored: not the beginning of a transaction, and no more than the 50 ms of rule 7 before the write.
//! 5. **A fence only grows for a key**, across takeovers, releases and purges, whatever the clock does: it is the
//!    database's time in microseconds, or one more than the last fence the key (or, after a purge, the table) had.
//! 6. **A lost reply is recognised.** Sending a claim or an ending again with the same owner answers as the first time
//!    would have: [`Answer::Written`] if the row carries that owner and what was to be written. A replacement that leaves
//!    the owner as it is cannot be told from another one's; whoever sends it again knows that they do.
//! 7. **Nothing waits long for a lock.** A row that a foreign transaction holds makes the store answer
//!    [`StoreError`] of kind [`Locked`](ErrorClass::Locked) within 50 ms, having changed nothing; [`Store::renew`]
//!    passes over such rows.
//! 8. **A future may be dropped at any point.** The connection it used is then closed, not used again.
//! 9. **Rows of others are read, not judged.** Missing columns are `NULL`, unknown words stay as they are.
//! 10. **A phase is written under its job's claim.** [`Store::phase`] changes the phase's row and renews the job's lease
//!     as one, and only while the job's row carries the claim: who took the job over is never overwritten.
//! 11. **Phases go with their job.** Purging and forgetting a job's row deletes the rows between `<key>/` and `<key>0` in
//!     the same transaction. A phase of a job that is gone is left over at worst, and taken for none: its
//!     fingerprint is the birth of the job's row that it was written under.

use std::{any::Any, error::Error as StdError, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{
    error::Error,
    record::{Record, Status, Version},
};

pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub(crate) mod transaction;

/// What a store's method returns.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A database that keeps the rows. See the [module](self) for the contract.
pub trait Store: Any + fmt::Debug + Send + Sync {
    /// What the store is called in logs: `sqlite`, `postgres`, `mysql`, `memory`.
    fn name(&self) -> &'static str;

    /// How many batches of writes may be under way at once.
    fn writers(&self) -> usize;

    /// Whether its futures are ready at once, so that the caller's own thread may drive them.
    fn is_local(&self) -> bool {
        false
    }

    /// Makes sure that the table is there and is ours: creates it where `create` says so and it is missing (safe when
    /// several processes do it at once; no DDL where it is in place), and refuses one that lacks columns or was made
    /// by a newer version.
    fn prepare(&self, create: bool) -> Reply<'_, ()>;

    /// The statements that create the table.
    fn ddl(&self) -> String;

    /// Inserts rows where the keys are absent; reads the rows that are there.
    fn insert<'a>(&'a self, batch: &'a [Insert]) -> Reply<'a, Vec<Answer>>;

    /// Replaces one row if it still is in the expected version; reads it otherwise.
    fn replace<'a>(&'a self, replacement: &'a Replace) -> Reply<'a, Answer>;

    /// Ends executions: each counts only on a row of that owner and fence and in a state that the ending expects
    /// ([`Ending::expects`]). A row that shows the same ending already answers [`Answer::Written`].
    fn finish<'a>(&'a self, batch: &'a [Finish]) -> Reply<'a, Vec<Answer>>;

    /// Renews the leases of executions whose rows carry owner and fence and are `processing` or `needs_review`.
    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Reply<'a, Vec<Renewal>>;

    /// Writes rows of phases: each counts only while the claim of its job stands ([`PhaseWrite::stands_in`]), whose lease
    /// it renews in the same change, and is answered with [`Answer::Gone`] where that does not stand any more. Otherwise as
    /// [`insert`](Self::insert), [`replace`](Self::replace) and [`finish`](Self::finish), but that a row which is inserted or
    /// replaced has the job's fence (or its own, if that is higher), and as its fingerprint the birth of the job's row:
    /// its `created_at` in microseconds, as a decimal number. A batch may hold several phases of one job.
    fn phase<'a>(&'a self, batch: &'a [PhaseWrite]) -> Reply<'a, Vec<Answer>>;

    /// Reads the rows whose keys lie between two, neither included, by their bytes and in that order; at most `limit`.
    fn between<'a>(&'a self, after: &'a str, before: &'a str, limit: u32) -> Reply<'a, Vec<Record>>;

    /// Reads rows, in the order of the keys.
    fn read<'a>(&'a self, keys: &'a [Arc<str>]) -> Reply<'a, Vec<Option<Record>>>;

    /// Reads rows that wait for somebody to turn them over for review, or to tell a person: what [`Watch`] asks for. One
    /// statement, which costs the same however many rows the table has.
    fn watch<'a>(&'a self, watch: &'a Watch) -> Reply<'a, Vec<Record>>;

    /// Reads the lines of the audit table that speak of a key, oldest first.
    fn audit<'a>(&'a self, key: &'a str) -> Reply<'a, Vec<Audited>>;

    /// Deletes at most `limit` rows: `completed`, `failed` and `released` ones past their stored expiry, and their phases
    /// with them. Rows that others hold locked are passed over. Answers how many it deleted, phases not counted.
    fn purge(&self, limit: u32) -> Reply<'_, u64>;

    /// Deletes one row if it still is in the expected version, its phases with it, and writes the audit line in the same
    /// transaction.
    fn forget<'a>(&'a self, key: &'a str, expected: &'a Version, audit: &'a Audit) -> Reply<'a, bool>;
}

/// A row to insert where the key is absent.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The key.
    pub key: Arc<str>,
    /// The row.
    pub row: NewRow,
}

/// A row to put in the place of an expected one.
#[derive(Debug, Clone)]
pub struct Replace {
    /// The key.
    pub key: Arc<str>,
    /// The version that must still stand.
    pub expected: Version,
    /// The whole new row.
    pub row: NewRow,
    /// Whether the fence is raised (a new execution, a forced resolution) or stays.
    pub raise_fence: bool,
    /// Whether `created_at` becomes now: a new life of the key.
    pub renew_birth: bool,
    /// A line for the audit table, written in the same transaction.
    pub audit: Option<Audit>,
}

impl Insert {
    /// Whether this insert made the row that was found: its reply was lost.
    #[must_use]
    pub fn made(&self, record: &Record) -> bool {
        self.row.owner.is_some() && self.row.owner == record.owner && self.row.status == record.status
    }
}

impl Replace {
    /// Whether this replacement made the row that was found: its reply was lost. Only a new owner tells; what leaves the
    /// owner as it is (a review, a resolution) looks alike whoever did it.
    #[must_use]
    pub fn made(&self, record: &Record) -> bool {
        let row = &self.row;
        let carried = row.owner.is_some() && row.owner == record.owner && row.status == record.status;
        let same = row.attempt == record.attempt && row.result == record.result;
        row.owner != self.expected.owner && carried && same
    }
}

/// All that a writer sets of a row. Fence, `created_at` and `completed_at` are the database's business.
#[derive(Debug, Clone)]
pub struct NewRow {
    /// The state. `Completed` sets `completed_at`; every other clears it.
    pub status: Status,
    /// The job's label.
    pub job: Option<String>,
    /// The shape of the job's template.
    pub template: Option<String>,
    /// The job's mode.
    pub mode: Option<String>,
    /// The job's stale policy.
    pub on_stale: Option<String>,
    /// The execution, 32 hex digits.
    pub owner: Option<String>,
    /// How many executions were begun.
    pub attempt: i32,
    /// How many of them were takeovers.
    pub takeovers: i32,
    /// The end of the lease.
    pub lease: Moment,
    /// The fingerprint.
    pub fingerprint: Option<String>,
    /// The stored result.
    pub result: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// The worker's label.
    pub worker: Option<String>,
    /// When a finished row stops to count.
    pub expires: Moment,
    /// When a person was told.
    pub alerted: Moment,
}

impl NewRow {
    /// The row as it was, history and all, in another state.
    pub(crate) fn with_history(record: &Record, status: Status) -> Self {
        Self {
            status,
            job: record.job.clone(),
            template: record.template.clone(),
            mode: record.mode.clone(),
            on_stale: record.on_stale.clone(),
            owner: record.owner.clone(),
            attempt: record.attempt,
            takeovers: record.takeovers,
            lease: record.lease_until.into(),
            fingerprint: record.fingerprint.clone(),
            result: record.result.clone(),
            error: record.error.clone(),
            worker: record.worker.clone(),
            expires: record.expires_at.into(),
            alerted: record.alerted_at.into(),
        }
    }
}

/// A point in time that goes into a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// `NULL`.
    Never,
    /// So long after the moment of writing.
    In(Duration),
    /// A time that was read from the row before, in microseconds.
    At(i64),
}

impl From<Option<Duration>> for Moment {
    fn from(after: Option<Duration>) -> Self {
        after.map_or(Self::Never, Self::In)
    }
}

impl From<Option<i64>> for Moment {
    fn from(at: Option<i64>) -> Self {
        at.map_or(Self::Never, Self::At)
    }
}

/// The answer to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The row is as it was to be written, by this write or by an earlier one of the same owner.
    Written {
        /// The row's fence.
        fence: i64,
    },
    /// The row was not as expected; nothing was changed.
    Found(Box<Record>),
    /// There is no such row, or the claim that a phase's write stands under is gone; nothing was changed.
    Gone,
}

/// The end of one execution.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The key.
    pub key: Arc<str>,
    /// The execution.
    pub owner: String,
    /// Its fence.
    pub fence: i64,
    /// How it ended.
    pub ending: Ending,
}

/// How an execution ended, as the row will say it.
#[derive(Debug, Clone)]
pub enum Ending {
    /// `completed`, with `completed_at`; the lease is cleared, the error kept as history.
    Completed {
        /// The stored result.
        result: Option<String>,
        /// How long the completion counts; `None` is for ever.
        ttl: Option<Duration>,
    },
    /// `failed`; the lease is cleared.
    Failed {
        /// The error's text.
        error: String,
        /// How long the failure counts.
        ttl: Option<Duration>,
    },
    /// `released`; the lease is cleared.
    Released {
        /// The error's text.
        error: Option<String>,
        /// When the row may be purged; `None` is never: it has phases that count.
        purge_after: Option<Duration>,
        /// The body was never entered, so that the attempt does not count.
        withdrawn: bool,
    },
    /// Still `processing`, with a lease that ends at the moment of writing. The fence is raised by one, so that a
    /// heartbeat that is still under way does not revive what its own holder gave up.
    Held {
        /// The error's text.
        error: Option<String>,
    },
}

impl Ending {
    /// The state that the row is in afterwards.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Failed,
            Self::Released { .. } => Status::Released,
            Self::Held { .. } => Status::Processing,
        }
    }

    /// Whether the row's fence grows by one: only where the claim is given up and its state stays the same.
    #[must_use]
    pub fn raises_fence(&self) -> bool {
        matches!(self, Self::Held { .. })
    }

    /// The states that it may end: a completion counts as long as nobody took the claim, even in review or released
    /// by a person; everything else only ends a claim that still stands.
    #[must_use]
    pub fn expects(&self) -> &'static [Status] {
        match self {
            Self::Completed { .. } => &[Status::Processing, Status::NeedsReview, Status::Released],
            _ => &[Status::Processing],
        }
    }
}

impl Finish {
    /// The fence that the row has afterwards.
    #[must_use]
    pub fn fence_after(&self) -> i64 {
        self.fence.saturating_add(i64::from(self.ending.raises_fence()))
    }

    /// Whether a row shows this ending already: its reply was lost. A completion with another result is somebody
    /// else's word: a person's, or a foreign worker's.
    #[must_use]
    pub fn shows_in(&self, record: &Record) -> bool {
        let says_so = match &self.ending {
            Ending::Completed { result, .. } => record.result == *result,
            _ => true,
        };
        record.is_of(&self.owner, self.fence_after()) && record.status == self.ending.status() && says_so
    }
}

/// A lease to renew.
#[derive(Debug, Clone)]
pub struct Renew {
    /// The key.
    pub key: Arc<str>,
    /// The execution.
    pub owner: String,
    /// Its fence.
    pub fence: i64,
    /// The lease, from the moment of writing.
    pub lease: Duration,
}

/// A row of a phase to write, under the claim of its job.
#[derive(Debug, Clone)]
pub struct PhaseWrite {
    /// The job's claim, and its lease.
    pub job: Renew,
    /// What is to be done with the phase's row.
    pub deed: PhaseDeed,
}

/// What is to be done with a phase's row.
#[derive(Debug, Clone)]
pub enum PhaseDeed {
    /// See [`Store::insert`].
    Insert(Box<Insert>),
    /// See [`Store::replace`].
    Replace(Box<Replace>),
    /// See [`Store::finish`].
    Finish(Finish),
}

impl PhaseWrite {
    /// The phase's key.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        match &self.deed {
            PhaseDeed::Insert(insert) => &insert.key,
            PhaseDeed::Replace(replace) => &replace.key,
            PhaseDeed::Finish(finish) => &finish.key,
        }
    }

    /// The state that the phase's row is in afterwards.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.deed {
            PhaseDeed::Insert(insert) => insert.row.status.clone(),
            PhaseDeed::Replace(replace) => replace.row.status.clone(),
            PhaseDeed::Finish(finish) => finish.ending.status(),
        }
    }

    /// The states of the job's row under which the write counts. As a job's own late completion does, an ending also
    /// counts once a person has released the key, as long as nobody took it.
    #[must_use]
    pub fn expects(&self) -> &'static [Status] {
        match self.status() {
            Status::Processing => &[Status::Processing, Status::NeedsReview],
            _ => &[Status::Processing, Status::NeedsReview, Status::Released],
        }
    }

    /// Whether the job's claim stands, by the job's row.
    #[must_use]
    pub fn stands_in(&self, job: &Record) -> bool {
        job.is_of(&self.job.owner, self.job.fence) && self.expects().contains(&job.status)
    }
}

/// What became of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lease runs anew.
    Renewed,
    /// The row belongs to another execution, or its state ended the claim.
    Lost,
    /// Somebody holds the row locked; nothing was changed.
    Skipped,
}

/// A line of the audit table: who changed a key's state, from what, to what, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Who.
    pub actor: String,
    /// The state before.
    pub from_status: String,
    /// The state after; `forgotten` where the row is gone.
    pub to_status: String,
    /// Why.
    pub note: String,
    /// The result that the row held before, so that no history is lost.
    pub old_result: Option<String>,
}

/// A line of the audit table, and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// When, in microseconds since 1970 on the database's clock.
    pub at: i64,
    /// The line.
    pub audit: Audit,
}

/// What a watcher looks for: `processing` rows that [`wait for review`](Record::waits_for_review), those that went stale
/// first before the others, and, where that is wanted, `needs_review` rows of which nobody was told.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// When a claim without lease counts as stale.
    pub foreign_stale_after: Duration,
    /// Whether rows are wanted of which nobody was told.
    pub untold: bool,
    /// The most rows that are read of each kind.
    pub limit: u32,
}

/// Why a store could not do what it was asked.
#[derive(Debug)]
pub struct StoreError {
    /// What that means for trying again.
    pub class: ErrorClass,
    /// What was tried.
    pub context: &'static str,
    /// What the database or its driver said.
    pub source: Box<dyn StdError + Send + Sync>,
}

/// What an error means for trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// A lost connection, a deadlock, a busy or restarting server: the same statement may succeed later.
    Transient,
    /// A foreign transaction holds a row of the batch: each item alone.
    Locked,
    /// It will be refused again: rights, a read-only database, a missing table.
    Permanent,
}

impl StoreError {
    pub(crate) fn new(
        class: ErrorClass,
        context: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { class, context, source: source.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.context, self.source)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

/// The longest label of a job or a worker that a row takes, in bytes. Longer ones are cut.
pub(crate) const LONGEST_LABEL: u32 = 255;

/// What it takes to open a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreOptions {
    /// The database.
    pub url: String,
    /// The table; `None` is `idempotency_keys`.
    pub table: Option<String>,
    /// The schema, where the database has such.
    pub schema: Option<String>,
    /// How many connections to keep.
    pub connections: usize,
}

impl StoreOptions {
    /// The options of a URL, all else by default: two connections, the table `idempotency_keys`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), table: None, schema: None, connections: 2 }
    }
}

/// Opens the store that a URL names, without touching the database yet.
///
/// # Errors
///
/// [`Error::Config`] for a malformed URL, a scheme that is not known or not compiled in, a table or schema name that
/// is not an identifier.
pub fn open(options: &StoreOptions) -> Result<Arc<dyn Store>, Error> {
    let scheme = options.url.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "memory" if options.url == "memory:" => Ok(Arc::new(memory::MemoryStore::default())),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(sqlite::SqliteStore::open(options)?)),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(postgres::PostgresStore::open(options)?)),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => Ok(Arc::new(mysql::MySqlStore::open(options)?)),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(missing_feature("sqlite")),
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => Err(missing_feature("postgres")),
        #[cfg(not(feature = "mysql"))]
        "mysql" | "mariadb" => Err(missing_feature("mysql")),
        _ => Err(Error::config(format!(
            "`{}` is not a database URL; write `sqlite://idem.db`, `postgres://user@host/database`, \
             `mysql://user@host/database` or `memory:`",
            without_password(&options.url)
        ))),
    }
}

#[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "mysql")))]
fn missing_feature(feature: &str) -> Error {
    Error::config(format!(
        "this build cannot speak `{feature}`; add `features = [\"{feature}\"]` to `idem-runtime` in Cargo.toml"
    ))
}

/// A URL that may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // What is not escaped as it should be may hold a password with any character.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (user.split(':').next().map(|user| format!("{user}@")), rest),
        None => (None, rest),
    };
    let rest = match rest.split_once('?') {
        Some((rest, query)) if query.contains("password") => rest,
        _ => rest,
    };
    format!("{scheme}://{}{rest}", user.unwrap_or_default())
}
