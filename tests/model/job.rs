//! The jobs of the model: their times are in whole seconds, which is the step of the model's clock.

use std::time::Duration;

use idem_runtime::{ErrorRule, Job, OnError, OnStale};

/// One step of the model's clock, in the microseconds of a row.
pub(crate) const SECOND: i64 = 1_000_000;

/// When a claim without owner counts as stale, and how long a released row is kept.
pub(crate) const FOREIGN_STALE_AFTER: Duration = Duration::from_secs(2);
pub(crate) const RELEASED_FOR: Duration = Duration::from_secs(1);

const fn lock_first() -> Job {
    Job::lock_first("pay", &["pay:", ""], "app", "app.rs", 1).stale_after(1)
}

pub(crate) static ALERT: Job = lock_first();
pub(crate) static ALERT_TTL: Job = lock_first().ttl(1);
pub(crate) static BY_MARK: Job = lock_first().on_error(ErrorRule::ByMark);
pub(crate) static RETRY: Job = lock_first().on_stale(OnStale::Retry);
pub(crate) static RETRY_TTL: Job = lock_first().on_stale(OnStale::Retry).ttl(1);
pub(crate) static RETRY_ONCE: Job = lock_first().on_stale(OnStale::Retry).max_takeovers(1);
pub(crate) static PROBE: Job = lock_first().on_stale(OnStale::Probe);
pub(crate) static AFTER: Job =
    Job::record_after("pay", &["pay:", ""], "app", "app.rs", 1).ttl(1).on_error(ErrorRule::Record);

/// How a body that stops before or after its effect may leave its claim: by an error, a panic, or because it was
/// dropped.
pub(crate) fn verdicts(job: &Job, had_effect: bool) -> &'static [OnError] {
    match job.error_rule() {
        ErrorRule::Hold => &[OnError::Hold],
        ErrorRule::ByMark if had_effect => &[OnError::Hold],
        ErrorRule::ByMark => &[OnError::Release],
        ErrorRule::Release => &[OnError::Release, OnError::Hold],
        ErrorRule::Record if had_effect => &[],
        ErrorRule::Record => &[OnError::Record],
    }
}

/// Whether two effects of a job are one too many.
pub(crate) fn is_strict(job: &Job) -> bool {
    job.stale_policy() == OnStale::Alert && matches!(job.error_rule(), ErrorRule::Hold | ErrorRule::ByMark)
}
