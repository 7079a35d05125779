//! The job and its phases.

use idem_runtime::{Job, OnStale};

use crate::job as whole;

/// A row of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Job,
    Charge,
    Mail,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Job, Self::Charge, Self::Mail];

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Job => "a",
            Self::Charge => "a/charge",
            Self::Mail => "a/mail",
        }
    }
}

/// Whoever takes the job over goes on with it; its completion counts for ever, or for a second.
pub(super) static JOB: &Job = &whole::RETRY;
pub(super) static JOB_TTL: &Job = &whole::RETRY_TTL;
/// Nobody takes it over before a person said so.
pub(super) static JOB_ALERT: &Job = &whole::ALERT;

/// Its lease outlasts that of the job.
pub(super) static CHARGE: Job = Job::lock_first("charge", &["charge"], "app", "app.rs", 2).stale_after(2);
pub(super) static MAIL: Job = Job::record_after("mail", &["mail"], "app", "app.rs", 3);
pub(super) static MAIL_RETRY: Job =
    Job::lock_first("mail", &["mail"], "app", "app.rs", 3).stale_after(1).on_stale(OnStale::Retry);
