//! A background job that is delivered twice has its effect once: one attribute on the job's function, one table in the
//! database you have.
//!
//! Queues deliver at least once. Between a job's effect and the moment that the queue hears of it there is a window in
//! which a worker can die, and then the job comes again, under a new id. The key of an idempotent job says what the
//! job is *for*, so that the repeat is recognised, and answered with what the first run returned:
//!
//! ```standalone_crate
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use idem_runtime::{Idem, Outcome, idempotent, with_outcome};
//!
//! static CHARGES: AtomicU32 = AtomicU32::new(0);
//!
//! #[idempotent(key = "billing:<user_id>:<month>", mode = "lock_first")]
//! async fn charge_user(user_id: u64, month: &str, cents: u64) -> anyhow::Result<String> {
//!     CHARGES.fetch_add(1, Ordering::SeqCst); // the provider's API
//!     Ok(format!("receipt for {month}: {cents} cents"))
//! }
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     Idem::connect("memory:").await?.install()?; // or sqlite://idem.db, postgres://…, Idem::from_env()
//!
//!     let receipt = charge_user(42, "2024-06", 1900).await?;
//!
//!     let (again, outcome) = with_outcome(charge_user(42, "2024-06", 1900)).await;
//!     assert_eq!(again?, receipt);
//!     assert_eq!(outcome, Some(Outcome::Replayed));
//!     assert_eq!(CHARGES.load(Ordering::SeqCst), 1);
//!     Ok(())
//! }
//! ```
//!
//! # Which mode when
//!
//! | which is worse? | write | a worker that dies between the effect and its record leaves |
//! | --- | --- | --- |
//! | twice (a charge) | `mode = "lock_first"`, the default | a key that needs review: a person decides. At most one effect |
//! | the same, but a repeat does no harm | `on_stale = "retry"` as well | a claim that the next delivery takes over |
//! | the same, and there is somebody to ask | `on_stale = probe(path)` as well | a claim that the next delivery [asks about](Probe) |
//! | never (a reset mail) | `mode = "record_after"` | nothing: the next delivery runs. At least one effect |
//!
//! A call is answered with the job's own result, new or stored, or with an [`Error`] in the job's error type (which
//! needs `From<idem_runtime::Error>`, as `anyhow::Error` and a `#[from]` variant have it). A busy key is an error and
//! never a silent success: [`Error::is_retryable`] tells a queue to deliver again.
//!
//! # Where to look
//!
//! - [`macro@idempotent`]: all arguments of the attribute. [`KeyPart`]: what can stand in a key, and its derive.
//! - [`phase!`]: for a job of several effects, each of which is done once.
//! - [`Idem`]: connecting, looking keys up, resolving those that need review, purging, shutting down.
//! - [`current`]: inside of a body, the key for the provider, the lease, the mark before the first effect.
//! - [`jobs::check`]: for a test that no two jobs can share a key.
//! - `testing` (with the feature of that name): for tests that your jobs survive a repeat, a race, and a death anywhere.
//!
//! # Features
//!
//! `sqlite` (default), `postgres` and `mysql` are the databases, `memory:` is always there. `uuid`, `chrono`, `time` and `jiff`
//! make the types of those crates parts of keys. `metrics` counts what the watcher does; `testing` is for tests.

mod alert;
mod block_on;
mod builder;
mod call;
mod claim;
mod current;
mod drive;
mod error;
mod fingerprint;
mod heartbeat;
mod idem;
mod job;
pub mod jobs;
mod key;
mod metrics;
mod outcome;
mod phase;
mod point;
mod probe;
mod progress;
pub mod record;
mod resolve;
mod result;
mod review;
mod run;
mod service;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod transact;
mod watcher;

pub use alert::{Alert, AlertKind};
pub use builder::Builder;
pub use call::{JobError, JobResult};
pub use current::{Current, current, try_current};
pub use error::{Error, ErrorKind};
pub use fingerprint::Fingerprint;
pub use idem::Idem;
pub use idem_macros::{KeyPart, idempotent};
pub use job::{ErrorRule, Job, Mode, OnError, OnStale};
pub use key::{Key, KeyPart, KeyWriter, refused};
pub use outcome::{Outcome, with_outcome, with_outcome_sync};
pub use phase::{PhaseError, PhaseReturn};
pub use probe::Probe;
pub use record::{Record, Status};
pub use resolve::{Forget, Resolution, Resolve, Resolved};
pub use result::Stored;
pub use transact::{Transact, TransactDatabase};

/// What the attribute's expansion calls. Not for anyone else: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use ::idem_macros::phase;
    pub use ::inventory;

    pub use crate::{
        call::{
            Call, Describe, built, none, run, run_classified, run_sync, run_sync_classified, stored, unstored,
        },
        job::{ErrorRule, Job, OnStale},
        jobs::JobRef,
        key::{refused::Part, render},
        phase::{
            phase_call, phase_finish, phase_finish_classified, phase_leave, phase_run, phase_run_classified,
            tx_phase, tx_phase_classified,
        },
        probe::{
            Admitted, admit, admit_sync, finish, finish_classified, finish_sync, finish_sync_classified,
        },
        run::Ticket,
        transact::{Begun, Ended, Guard, tx_begin, tx_body, tx_body_classified, tx_end, tx_guard},
    };
}
