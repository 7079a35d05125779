//! The points of a call where a process can die, as a test names them.

/// A point where a process can die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public where tests are"))]
pub enum Point {
    /// Before anything was written or looked up.
    BeforeClaim,
    /// The database has the claim; the worker has not heard of it.
    ClaimWritten,
    /// The worker may run the body (or its probe), and has not entered it.
    Claimed,
    /// A probe answered, and nothing was recorded of it.
    ProbeAnswered,
    /// The body waits for something.
    InBody,
    /// The body came to its end, and nothing was recorded of it.
    BodyReturned,
    /// The database has the ending (a completion, a release, a held claim); the worker has not heard of it.
    EndingWritten,
    /// The ending is recorded, and the caller has no answer yet.
    Ended,
    /// A stale claim was turned over for review, and no person was told.
    Flagged,
    /// A person was told, and the row does not say so.
    Told,
}

#[cfg(feature = "testing")]
impl Point {
    /// All of them, in the order in which a call comes by them.
    pub const ALL: &[Self] = &[
        Self::BeforeClaim,
        Self::ClaimWritten,
        Self::Claimed,
        Self::ProbeAnswered,
        Self::InBody,
        Self::BodyReturned,
        Self::EndingWritten,
        Self::Ended,
        Self::Flagged,
        Self::Told,
    ];
}

#[cfg(feature = "testing")]
mod watched {
    use std::{
        fmt,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
    };

    use once_cell::sync::OnceCell;

    use super::Point;

    type Hook = dyn Fn(Point) + Send + Sync;

    static HOOK: OnceCell<Box<Hook>> = OnceCell::new();

    tokio::task_local! {
        static FUSE: Arc<Fuse>;
    }

    /// A process that is to die at a point: what runs inside of it reaches no store from then on.
    pub(crate) struct Fuse {
        at: Point,
        /// How often it still comes by that point unharmed.
        spared: AtomicUsize,
        blown: AtomicBool,
    }

    impl fmt::Debug for Fuse {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Fuse").field("at", &self.at).finish_non_exhaustive()
        }
    }

    impl Fuse {
        pub(crate) fn new(at: Point, spared: usize) -> Arc<Self> {
            Arc::new(Self { at, spared: AtomicUsize::new(spared), blown: AtomicBool::new(false) })
        }

        /// It comes by a point.
        fn pass(&self, point: Point) {
            let spared = |left: usize| left.checked_sub(1);
            let is_its_time =
                || self.spared.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spared).is_err();
            if self.at == point && is_its_time() {
                self.blown.store(true, Ordering::SeqCst);
            }
        }

        pub(crate) fn is_blown(&self) -> bool {
            self.blown.load(Ordering::SeqCst)
        }

        /// What runs inside of this is the process that is to die.
        pub(crate) fn scope<F: Future>(
            self: &Arc<Self>,
            future: F,
        ) -> impl Future<Output = F::Output> + use<F> {
            FUSE.scope(Arc::clone(self), future)
        }

        pub(crate) fn sync_scope<R>(self: &Arc<Self>, call: impl FnOnce() -> R) -> R {
            FUSE.sync_scope(Arc::clone(self), call)
        }
    }

    /// Has a function called at every point that is reached, on the thread that reaches it. Only the first one counts.
    ///
    /// It is for a test's child process, which says there that it is to be killed now.
    pub fn at_every_point(hook: impl Fn(Point) + Send + Sync + 'static) {
        // A second hook could only be ignored or surprise the first.
        let _ = HOOK.set(Box::new(hook));
    }

    pub(crate) fn reached(point: Point) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
        let _ = FUSE.try_with(|fuse| fuse.pass(point));
    }

    pub(crate) fn is_dead() -> bool {
        FUSE.try_with(|fuse| fuse.is_blown()).unwrap_or(false)
    }
}

#[cfg(feature = "testing")]
pub use watched::at_every_point;
#[cfg(feature = "testing")]
pub(crate) use watched::{Fuse, is_dead, reached};

/// Says that a point is reached: nothing, but for tests.
#[cfg(not(feature = "testing"))]
#[inline]
pub(crate) const fn reached(_: Point) {}

/// Whether a test has this process count as dead.
#[cfg(not(feature = "testing"))]
#[inline]
pub(crate) const fn is_dead() -> bool {
    false
}
