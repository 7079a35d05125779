//! Alerts: telling a person that keys need review.

use std::{
    collections::HashSet,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::record::Record;

/// A key that needs review.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Alert {
    /// The key, as it is stored.
    pub key: String,
    /// The label of the job that stopped half way.
    pub job: Option<String>,
    /// What is known of that execution.
    pub reason: String,
    /// The row as it was found.
    pub record: Record,
}

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
    /// Their keys, and those of the alerts that are being told.
    keys: HashSet<String>,
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

    /// Has the hook called, if there is one, on a thread of its own: it may block, and it may panic, and neither is
    /// the caller's business. What comes while it runs is told as one, and a key that waits already is not told twice.
    /// `told` is called when the hook has returned.
    pub(crate) fn call(&self, alert: Alert, told: impl FnOnce() + Send + 'static) {
        let Some(bell) = &self.0 else { return };
        let mut state = bell.lock();
        if !state.keys.insert(alert.key.clone()) {
            return;
        }
        state.waiting.push((alert, Box::new(told)));
        if mem::replace(&mut state.rings, true) {
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
            // A hook that panics has told nobody; the next call that meets such a key has it called again.
            if catch_unwind(AssertUnwindSafe(|| (self.tell)(&alerts))).is_ok() {
                for told in told {
                    told();
                }
            }
            let mut state = self.lock();
            for alert in &alerts {
                state.keys.remove(&alert.key);
            }
        }
    }
}
