//! Alerts: telling a person that keys need review, or that a job goes on and on.

use std::{
    collections::HashSet,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::{metrics, record::Record};

/// Why a person is told of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertKind {
    /// Its worker stopped half way, and nothing goes on until somebody resolves it.
    NeedsReview,
    /// Its worker is alive and has been at it for very long (`Builder::overdue_after`).
    Overdue,
}

impl AlertKind {
    /// The word for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NeedsReview => "needs_review",
            Self::Overdue => "overdue",
        }
    }
}

/// A key that a person should look at.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Alert {
    /// Why.
    pub kind: AlertKind,
    /// The key, as it is stored.
    pub key: String,
    /// The label of the job.
    pub job: Option<String>,
    /// What is known of the execution.
    pub reason: String,
    /// The row as it was found.
    pub record: Record,
}

impl Alert {
    pub(crate) fn of(kind: AlertKind, record: &Record) -> Self {
        let reason = match kind {
            AlertKind::NeedsReview => record.evidence(),
            AlertKind::Overdue => record.progress(),
        };
        Self { kind, key: record.key.clone(), job: record.job.clone(), reason, record: record.clone() }
    }

    fn id(&self) -> Id {
        (self.kind, self.key.clone(), self.record.fence)
    }
}

/// What is told of once at a time: an execution of a key.
type Id = (AlertKind, String, i64);
type Tell = dyn Fn(&[Alert]) + Send + Sync;
type Told = Box<dyn FnOnce() + Send>;

/// What the application wants to be done with alerts.
#[derive(Clone, Default)]
pub(crate) struct Hook(Option<Arc<Bell>>);

struct Bell {
    tell: Box<Tell>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Alerts that wait for the thread.
    waiting: Vec<(Alert, Told)>,
    /// Which they are, and which are being told.
    ids: HashSet<Id>,
    /// Whether there is a thread.
    rings: bool,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.is_some()).finish()
    }
}

impl Hook {
    pub(crate) fn new(hook: impl Fn(&[Alert]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Bell { tell: Box::new(hook), state: Mutex::default() })))
    }

    /// Whether somebody wants to be told.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Whether somebody is being told right now that a key needs review, or is about to be.
    pub(crate) fn is_telling(&self, record: &Record) -> bool {
        let id = (AlertKind::NeedsReview, record.key.clone(), record.fence);
        self.0.as_ref().is_some_and(|bell| bell.lock().ids.contains(&id))
    }

    /// Whether anybody is being told of anything.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.as_ref().is_some_and(|bell| bell.lock().rings)
    }

    /// Has the hook called, if there is one, on a thread of its own: it may block, and it may panic, and neither is
    /// the caller's business. What comes while it runs is told as one, and a key that waits already is not told twice.
    /// Each `told` is called when the hook has returned.
    pub(crate) fn call(&self, alerts: impl IntoIterator<Item = (Alert, Told)>) {
        let Some(bell) = &self.0 else { return };
        let mut state = bell.lock();
        for (alert, told) in alerts {
            if state.ids.insert(alert.id()) {
                state.waiting.push((alert, told));
            }
        }
        if state.waiting.is_empty() || mem::replace(&mut state.rings, true) {
            return;
        }
        drop(state);
        let ringing = Arc::clone(bell);
        let spawned = thread::Builder::new().name("idem-alert".into()).spawn(move || ringing.ring());
        if let Err(error) = spawned {
            *bell.lock() = State::default();
            tracing::error!(%error, "cannot start a thread for the alert hook");
        }
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what waits, until nothing does.
    fn ring(&self) {
        loop {
            let mut state = self.lock();
            let (alerts, told): (Vec<_>, Vec<_>) = mem::take(&mut state.waiting).into_iter().unzip();
            if alerts.is_empty() {
                state.rings = false;
                return;
            }
            drop(state);
            // A hook that panics has told nobody; a watcher that finds such a key has it called again.
            if catch_unwind(AssertUnwindSafe(|| (self.tell)(&alerts))).is_ok() {
                for alert in &alerts {
                    metrics::told(alert.kind);
                }
                for told in told {
                    told();
                }
            }
            let mut state = self.lock();
            for alert in &alerts {
                state.ids.remove(&alert.id());
            }
        }
    }
}
