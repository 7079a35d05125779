//! Alerts: telling a person that keys need review.

use std::{fmt, sync::Arc, thread};

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

/// What the application wants to be done with alerts.
#[derive(Clone, Default)]
pub(crate) struct Hook(Option<Arc<Tell>>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.is_some()).finish()
    }
}

impl Hook {
    pub(crate) fn new(hook: impl Fn(&[Alert]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Whether somebody wants to be told.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Calls the hook, if there is one, on a thread of its own: it may block, and it may panic, and neither is the
    /// caller's business. `told` is called when it has returned.
    pub(crate) fn call(&self, alerts: Vec<Alert>, told: impl FnOnce() + Send + 'static) {
        let Some(hook) = self.0.clone() else { return };
        let spawned = thread::Builder::new().name("idem-alert".into()).spawn(move || {
            hook(&alerts);
            told();
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread for the alert hook");
        }
    }
}
