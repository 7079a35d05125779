//! How a call ended, for those who want to count: executed, replayed, refused.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::error::ErrorKind;

/// How one call of an idempotent job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The body ran under a fresh claim and its completion was recorded.
    Executed,
    /// The body ran under a claim that was taken over from a worker that died.
    TookOver,
    /// A probe found that the effect had happened; the body did not run.
    Probed,
    /// The stored result was given; the body did not run.
    Replayed,
    /// The body ran and returned its own error.
    BodyFailed,
    /// The call was answered with an [`Error`](crate::Error) of this kind.
    Refused(ErrorKind),
}

/// Where the first job that is entered leaves its outcome.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    taken: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

tokio::task_local! {
    static SLOT: Arc<Slot>;
}

impl Slot {
    /// The surrounding slot, for the first call that asks.
    pub(crate) fn take() -> Option<Arc<Self>> {
        SLOT.try_with(|slot| (!slot.taken.swap(true, Ordering::Relaxed)).then(|| Arc::clone(slot)))
            .ok()
            .flatten()
    }

    pub(crate) fn set(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    fn get(&self) -> Option<Outcome> {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a future and tells how the first idempotent job in it ended; `None` if it entered none.
///
/// ```
/// # use idem_runtime::{Idem, Outcome, idempotent, with_outcome};
/// #[idempotent(key = "mail:<user_id>", mode = "record_after")]
/// async fn send_mail(user_id: u64) -> Result<(), idem_runtime::Error> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), idem_runtime::Error> {
/// Idem::connect("memory:").await?.install()?;
/// let (_, first) = with_outcome(send_mail(42)).await;
/// let (_, second) = with_outcome(send_mail(42)).await;
/// assert_eq!(first, Some(Outcome::Executed));
/// assert_eq!(second, Some(Outcome::Replayed));
/// # Ok(())
/// # }
/// ```
pub async fn with_outcome<F: Future>(future: F) -> (F::Output, Option<Outcome>) {
    let slot = Arc::new(Slot::default());
    let output = SLOT.scope(Arc::clone(&slot), future).await;
    (output, slot.get())
}

/// [`with_outcome`] for a plain function call.
pub fn with_outcome_sync<R>(call: impl FnOnce() -> R) -> (R, Option<Outcome>) {
    let slot = Arc::new(Slot::default());
    let output = SLOT.sync_scope(Arc::clone(&slot), call);
    (output, slot.get())
}
