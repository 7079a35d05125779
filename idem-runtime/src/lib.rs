//! Idempotent background jobs.

mod alert;
mod block_on;
mod builder;
mod call;
mod claim;
mod current;
mod error;
mod fingerprint;
mod heartbeat;
mod idem;
mod job;
pub mod jobs;
mod key;
mod outcome;
pub mod record;
mod resolve;
mod result;
mod run;
mod service;
pub mod store;

pub use alert::Alert;
pub use builder::Builder;
pub use call::{JobError, JobResult};
pub use current::{Current, current, try_current};
pub use error::{Error, ErrorKind};
pub use fingerprint::Fingerprint;
pub use idem::Idem;
pub use idem_macros::{KeyPart, idempotent};
pub use job::{ErrorRule, Job, Mode, OnError, OnStale};
pub use key::{Key, KeyPart, KeyWriter};
pub use outcome::{Outcome, with_outcome, with_outcome_sync};
pub use record::{Record, Status};
pub use resolve::{Forget, Resolution, Resolve, Resolved};
pub use result::Stored;

/// What the attribute's expansion calls. Not for anyone else: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use ::inventory;

    pub use crate::{
        call::{Call, Describe, none, run, run_classified, run_sync, run_sync_classified, stored, unstored},
        job::{ErrorRule, Job, OnStale},
        jobs::JobRef,
        key::render,
    };
}
