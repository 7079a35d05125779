use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

/// Microseconds on the clock that all processes of this machine share, and that nobody sets.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanoseconds] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000 + nanoseconds / 1_000
}

/// What this process takes for the time of day, in seconds since 1970.
pub(crate) fn of_day() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or_default()
}
