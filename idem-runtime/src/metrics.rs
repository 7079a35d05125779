//! What the watcher counts, for the `metrics` facade where the application has one.

#[cfg(feature = "metrics")]
mod counted {
    use std::time::Duration;

    use metrics::{counter, gauge, histogram};

    use crate::alert::AlertKind;

    pub(crate) fn looked(stale: usize, took: Duration) {
        counter!("idem_watcher_looks_total").increment(1);
        histogram!("idem_watcher_look_seconds").record(took.as_secs_f64());
        gauge!("idem_watcher_stale_claims").set(u32::try_from(stale).unwrap_or(u32::MAX));
    }

    pub(crate) fn look_failed() {
        counter!("idem_watcher_look_failures_total").increment(1);
    }

    pub(crate) fn turned_over() {
        counter!("idem_reviews_total").increment(1);
    }

    pub(crate) fn told(kind: AlertKind) {
        counter!("idem_alerts_total", "kind" => kind.as_str()).increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
mod counted {
    use std::time::Duration;

    use crate::alert::AlertKind;

    pub(crate) const fn looked(_: usize, _: Duration) {}

    pub(crate) const fn look_failed() {}

    pub(crate) const fn turned_over() {}

    pub(crate) const fn told(_: AlertKind) {}
}

pub(crate) use counted::{look_failed, looked, told, turned_over};
