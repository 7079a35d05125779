//! The execution that surrounds the code that asks: its key, its fence, its lease.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crate::{claim::Lease, error::Error, key::Key, service::Service};

tokio::task_local! {
    static CURRENT: Arc<Context>;
}

/// What a body can know of its execution.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) service: Service,
    pub(crate) key: Key,
    pub(crate) fence: i64,
    pub(crate) attempt: u32,
    pub(crate) lease: Option<Arc<Lease>>,
    pub(crate) mark: AtomicBool,
    pub(crate) outer: Option<Arc<Context>>,
}

impl Context {
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Whether this execution, or one around it, holds the key.
    pub(crate) fn holds(&self, service: &Service, key: &Key) -> bool {
        (self.key == *key && self.service.is(service))
            || self.outer.as_ref().is_some_and(|outer| outer.holds(service, key))
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.mark.load(Ordering::SeqCst)
    }

    /// A future that runs inside of this execution.
    pub(crate) fn scope<F: Future>(self: &Arc<Self>, future: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(Arc::clone(self), future)
    }

    pub(crate) fn sync_scope<R>(self: &Arc<Self>, call: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(Arc::clone(self), call)
    }
}

/// The execution around this code. See [`current`].
#[derive(Debug, Clone)]
pub struct Current(Where);

#[derive(Debug, Clone)]
enum Where {
    Inside(Arc<Context>),
    /// A key that no other call has, so that nothing is ever mistaken for a repeat of it.
    Outside(Key),
}

/// The execution of the idempotent job around this code.
///
/// Outside of a job (in a unit test of a body, say) it answers with a key that is different on every call, no lease
/// and no fence; [`try_current`] tells the difference.
///
/// A task that the body spawns is outside: hand it what it needs.
///
/// ```
/// use idem_runtime::{Error, current, idempotent};
///
/// #[idempotent(key = "billing:<user_id>:<month>", on_error = "by_mark")]
/// async fn charge_user(user_id: u64, month: &str) -> Result<String, Error> {
///     let provider_key = current().derived_key("stripe"); // the same on every attempt
///     current().effect_starts(); // from here on, nobody knows
///     Ok(provider_key)
/// }
/// ```
#[must_use]
pub fn current() -> Current {
    try_current().unwrap_or_else(|_| {
        let mut text = String::from("outside%:");
        let mut bytes = [0; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // Without random numbers the address of a fresh allocation and the time still tell calls apart.
            let _ = write!(text, "{:p}{:?}", &bytes, Instant::now());
        }
        text.push_str(&crate::key::hex(&bytes));
        Current(Where::Outside(Key::raw(&text)))
    })
}

/// [`current`], as an error outside of a job.
///
/// # Errors
///
/// [`Error::OutsideJob`].
pub fn try_current() -> Result<Current, Error> {
    Context::current()
        .map(|context| Current(Where::Inside(context)))
        .ok_or(Error::OutsideJob { called: "try_current" })
}

impl Current {
    fn inside(&self) -> Option<&Context> {
        match &self.0 {
            Where::Inside(context) => Some(context),
            Where::Outside(_) => None,
        }
    }

    /// The whole key, namespace included.
    #[must_use]
    pub fn key(&self) -> &Key {
        match &self.0 {
            Where::Inside(context) => &context.key,
            Where::Outside(key) => key,
        }
    }

    /// A key to hand to a provider as *its* idempotency key: 32 hex digits, the same on every attempt of this key
    /// and label, in every version of this library.
    ///
    /// The first half of the SHA-256 of the [whole key](Self::key), a zero byte and the label.
    #[must_use]
    pub fn derived_key(&self, label: &str) -> String {
        self.key().derive(label)
    }

    /// The fence: a number that only grows for a key, for stores that can refuse an older one. 0 where there is no
    /// claim (`record_after`).
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.inside().map_or(0, |context| context.fence)
    }

    /// The how manyeth execution of this key this is, from 1 on. 1 where there is no claim (`record_after`).
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inside().map_or(1, |context| context.attempt)
    }

    /// When the lease ends on this machine's clock, as things are; a heartbeat moves it. `None` without a claim.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.inside()?.lease.as_ref()?.ends())
    }

    /// Whether the lease is lost: its end has passed, or somebody else holds the claim.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.inside().and_then(|context| context.lease.as_ref()).is_some_and(|lease| lease.is_lost())
    }

    /// Resolves when the lease is lost; never without a claim.
    pub async fn lost(&self) {
        match self.inside().and_then(|context| context.lease.clone()) {
            Some(lease) => lease.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Says that the first outside effect comes next (`on_error = "by_mark"`): an `Err`, a panic or a drop before
    /// this mark frees the key, after it holds the key.
    pub fn effect_starts(&self) {
        if let Some(context) = self.inside() {
            context.mark.store(true, Ordering::SeqCst);
        }
    }
}
