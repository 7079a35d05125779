//! The execution that surrounds the code that asks: its key, its fence, its lease.

use std::{
    collections::HashSet,
    fmt::Write as _,
    future::poll_fn,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Instant,
};

use crate::{claim::Lease, error::Error, idem::Idem, job::Job, key::Key, service::Service};

tokio::task_local! {
    static CURRENT: Arc<Context>;
}

/// What a body can know of its execution.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) idem: Idem,
    pub(crate) job: &'static Job,
    pub(crate) key: Key,
    /// The key as it stands in the row.
    pub(crate) stored: Arc<str>,
    /// Of an execution that has a claim.
    pub(crate) owner: Option<String>,
    pub(crate) fence: i64,
    pub(crate) attempt: u32,
    pub(crate) lease: Option<Arc<Lease>>,
    pub(crate) mark: AtomicBool,
    /// The execution whose body this one runs in.
    pub(crate) outer: Option<Arc<Context>>,
    pub(crate) part: Part,
}

/// What an execution is the execution of.
#[derive(Debug)]
pub(crate) enum Part {
    /// A whole job.
    Whole(Whole),
    /// A phase of the job that runs in this execution.
    Phase(Arc<Context>),
}

/// What the phases of an execution have to know of it.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// When the job's row was born; `None` is in this execution, before which it has no phases.
    pub(crate) born: Option<i64>,
    /// The keys of the phases that were entered.
    pub(crate) entered: Mutex<HashSet<Arc<str>>>,
    /// One of them was in a transaction of the body's own, which may lock the job's row until it is committed.
    pub(crate) lent: AtomicBool,
}

impl Context {
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    pub(crate) fn service(&self) -> &Service {
        self.idem.service()
    }

    /// The execution of the job that this one is, or is a phase of.
    pub(crate) fn whole(self: &Arc<Self>) -> &Arc<Self> {
        match &self.part {
            Part::Whole(_) => self,
            Part::Phase(whole) => whole,
        }
    }

    /// What the phases of the whole job have to know.
    fn progress(&self) -> &Whole {
        match &self.part {
            Part::Whole(progress) => progress,
            Part::Phase(whole) => whole.progress(),
        }
    }

    /// Notes that a phase is entered; whether it is for the first time.
    pub(crate) fn enter(&self, phase: &Arc<str>) -> bool {
        let mut entered = self.progress().entered.lock().unwrap_or_else(PoisonError::into_inner);
        entered.insert(Arc::clone(phase))
    }

    /// Notes that a phase is in a transaction of the body's own.
    pub(crate) fn lend(&self) {
        self.progress().lent.store(true, Ordering::Relaxed);
    }

    /// Whether a transaction of the body's own may lock the job's row.
    pub(crate) fn is_lent(&self) -> bool {
        self.progress().lent.load(Ordering::Relaxed)
    }

    /// When the job's row was born; `None` is in this execution.
    pub(crate) fn born(&self) -> Option<i64> {
        self.progress().born
    }

    /// Whether the lease is lost, or that of the job that this is a phase of.
    fn is_lost(self: &Arc<Self>) -> bool {
        self.leases().any(|lease| lease.is_lost())
    }

    /// The lease, and that of the job that this is a phase of.
    fn leases(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Lease>> {
        [self, self.whole()].into_iter().filter_map(|context| context.lease.as_ref())
    }

    /// Whether this execution, or one around it, holds the key.
    pub(crate) fn holds(&self, service: &Service, key: &Key) -> bool {
        (self.key == *key && self.service().is(service))
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
    fn inside(&self) -> Option<&Arc<Context>> {
        match &self.0 {
            Where::Inside(context) => Some(context),
            Where::Outside(_) => None,
        }
    }

    /// The whole key, namespace included. In a phase it is the phase's: `<key>/charge`.
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
    /// claim (`record_after`). A phase has that of its job.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.inside().map_or(0, |context| context.fence)
    }

    /// The how manyeth execution of this key this is, from 1 on. 1 where there is no claim (`record_after`, and phases
    /// that have none of their own).
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inside().map_or(1, |context| context.attempt)
    }

    /// When the lease ends on this machine's clock, as things are; a heartbeat moves it. `None` without a claim. In a phase
    /// the job's lease counts as well: what ends first.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.inside()?.leases().map(|lease| lease.ends()).min()
    }

    /// Whether the lease is lost: its end has passed, or somebody else holds the claim. In a phase also whether the job's
    /// is.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.inside().is_some_and(Context::is_lost)
    }

    /// Resolves when the lease is lost, in a phase also when the job's is; never without a claim.
    pub async fn lost(&self) {
        let leases = self.inside().into_iter().flat_map(Context::leases).map(Arc::clone);
        let mut losses: Vec<_> = leases.map(|lease| Box::pin(async move { lease.lost().await })).collect();
        poll_fn(|cx| {
            if losses.iter_mut().any(|loss| loss.as_mut().poll(cx).is_ready()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Says that the first outside effect comes next (`on_error = "by_mark"`): an `Err`, a panic or a drop before
    /// this mark frees the key, after it holds the key.
    pub fn effect_starts(&self) {
        if let Some(context) = self.inside() {
            context.mark.store(true, Ordering::SeqCst);
        }
    }
}
