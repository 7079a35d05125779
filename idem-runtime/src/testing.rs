//! Tests of your own jobs: delivered twice, delivered at once, and with a worker that dies at a point of your choice.
//!
//! A [`Kit`] is an [`Idem`] in memory whose clock a test moves. Nothing sleeps, and nothing is left behind.
//!
//! ```
//! use std::{sync::Mutex, time::Duration};
//!
//! use idem_runtime::{
//!     Error, Idem, idempotent,
//!     testing::{Kit, Point},
//! };
//!
//! /// The outside world: it knows by the provider's key what it has done.
//! #[derive(Default)]
//! struct Bank {
//!     charges: Mutex<Vec<u64>>,
//! }
//!
//! impl Bank {
//!     async fn charge(&self, user_id: u64) {
//!         self.charges.lock().unwrap().push(user_id);
//!         tokio::task::yield_now().await; // the bank's answer takes a while
//!     }
//! }
//!
//! #[idempotent(key = "fee:<user_id>", stale_after = "30s", idem = idem)]
//! async fn charge_fee(idem: &Idem, bank: &Bank, user_id: u64) -> Result<(), Error> {
//!     bank.charge(user_id).await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! // However often it comes, the fee is taken once.
//! let (kit, bank) = (Kit::new().await?, Bank::default());
//! let [first, second] = kit.deliver_twice(|| charge_fee(kit.idem(), &bank, 42)).await;
//! assert!(first.result.is_ok() && second.result.is_ok());
//! let racing = kit.race(8, || charge_fee(kit.idem(), &bank, 43)).await;
//! assert_eq!(racing.iter().filter(|delivery| delivery.result.is_ok()).count(), 1);
//! assert_eq!(*bank.charges.lock().unwrap(), [42, 43]);
//!
//! // Wherever its worker dies, the fee is never taken twice, and the key is done or waits for a person.
//! for &point in Point::ALL {
//!     let (kit, bank) = (Kit::new().await?, Bank::default());
//!     let died = kit.crash_at(point, charge_fee(kit.idem(), &bank, 42)).await.is_none();
//!     kit.advance(Duration::from_secs(31)); // the lease ends
//!     let again = charge_fee(kit.idem(), &bank, 42).await;
//!     let taken = bank.charges.lock().unwrap().len();
//!     assert!(taken <= 1, "taken {taken} times after a crash at {point:?}");
//!     assert!(again.is_ok() && taken == 1 || matches!(again, Err(Error::NeedsReview { .. })) && died);
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

pub use crate::point::{Point, at_every_point};
use crate::{
    error::Error,
    idem::Idem,
    outcome::{Outcome, with_outcome},
    point::Fuse,
    store::memory::MemoryStore,
};

/// An [`Idem`] in memory, with a clock that a test moves.
///
/// Its jobs are those that run through [`Kit::idem`]: by `idem = …`, or because the test installs it. It watches for
/// nothing by itself; a stale claim is found by the next delivery. `transactional` jobs need a database: give them
/// `sqlite::memory:`.
pub struct Kit {
    idem: Idem,
    store: Arc<MemoryStore>,
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit").field("store", &self.store).finish_non_exhaustive()
    }
}

/// What became of one delivery.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delivery<R> {
    /// What the job returned.
    pub result: R,
    /// How the call ended; `None` if the delivery entered no idempotent job.
    pub outcome: Option<Outcome>,
}

impl<R> From<(R, Option<Outcome>)> for Delivery<R> {
    fn from((result, outcome): (R, Option<Outcome>)) -> Self {
        Self { result, outcome }
    }
}

impl Kit {
    /// A kit with an empty table.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] where no thread can be started.
    pub async fn new() -> Result<Self, Error> {
        let store = Arc::new(MemoryStore::default());
        let shared: Arc<MemoryStore> = Arc::clone(&store);
        let idem = Idem::builder().store(shared).watcher(false).connect().await?;
        Ok(Self { idem, store })
    }

    /// The `Idem` for the jobs under test.
    #[must_use]
    pub fn idem(&self) -> &Idem {
        &self.idem
    }

    /// Moves the clock of the table forward: leases end and results expire at once.
    ///
    /// A body that runs meanwhile is like one whose worker was paused for so long: it does not know, and somebody else
    /// may take its claim.
    pub fn advance(&self, by: Duration) {
        self.store.advance(by);
    }

    /// Delivers a job, and once it has ended delivers it again.
    pub async fn deliver_twice<R, F: Future<Output = R>>(&self, deliver: impl Fn() -> F) -> [Delivery<R>; 2] {
        let first = with_outcome(deliver()).await;
        [first.into(), with_outcome(deliver()).await.into()]
    }

    /// Delivers a job `n` times at once. They take turns on the test's own task: when one waits, the next goes on.
    ///
    /// Answers in the order in which they began.
    pub async fn race<R, F: Future<Output = R>>(
        &self,
        n: usize,
        deliver: impl Fn() -> F,
    ) -> Vec<Delivery<R>> {
        let mut running: Vec<_> = (0..n).map(|_| Racer::Runs(Box::pin(with_outcome(deliver())))).collect();
        poll_fn(|cx| {
            let mut all_ended = true;
            for racer in &mut running {
                if let Racer::Runs(delivery) = racer {
                    match delivery.as_mut().poll(cx) {
                        Poll::Ready(ended) => *racer = Racer::Ended(ended.into()),
                        Poll::Pending => all_ended = false,
                    }
                }
            }
            if all_ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        running.into_iter().filter_map(Racer::ended).collect()
    }

    /// Runs a delivery whose worker dies at a point. `None` if it died; what the delivery gave if it did not come by
    /// that point.
    ///
    /// What the worker would have written after that point is not written, its heartbeats end, and its body goes no
    /// further. What it did to the test's own world before stays done.
    pub async fn crash_at<R>(&self, point: Point, delivery: impl Future<Output = R>) -> Option<R> {
        self.crash_at_nth(point, 1, delivery).await
    }

    /// [`crash_at`](Self::crash_at) the `n`th time that the worker comes by the point, from 1 on: a job of several phases
    /// comes by most of them once for each phase.
    pub async fn crash_at_nth<R>(
        &self,
        point: Point,
        n: usize,
        delivery: impl Future<Output = R>,
    ) -> Option<R> {
        let fuse = Fuse::new(point, n.saturating_sub(1));
        let mut delivery = Box::pin(fuse.scope(delivery));
        poll_fn(|cx| {
            let polled = delivery.as_mut().poll(cx);
            if fuse.is_blown() { Poll::Ready(None) } else { polled.map(Some) }
        })
        .await
    }

    /// [`crash_at`](Self::crash_at) for a synchronous job. Its body is never interrupted.
    pub fn crash_at_sync<R>(&self, point: Point, delivery: impl FnOnce() -> R) -> Option<R> {
        let fuse = Fuse::new(point, 0);
        let returned = fuse.sync_scope(delivery);
        (!fuse.is_blown()).then_some(returned)
    }
}

/// One of several deliveries at once.
enum Racer<R, F> {
    Runs(Pin<Box<F>>),
    Ended(Delivery<R>),
}

impl<R, F> Racer<R, F> {
    fn ended(self) -> Option<Delivery<R>> {
        match self {
            Self::Ended(delivery) => Some(delivery),
            Self::Runs(_) => None,
        }
    }
}
