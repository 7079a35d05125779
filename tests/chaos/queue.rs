//! The queue: it delivers at least once, and again what was not acknowledged.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use fastrand::Rng;
use idem_tests::Backend;

use crate::{
    delivery::{Delivery, End},
    key::Key,
    plan::{self, Stream},
};

/// So many deliveries of a key are on their way at most.
const COPIES: usize = 3;

/// So many keys are open at most.
const OPEN: usize = 120;

#[derive(Debug)]
pub(crate) struct Queue {
    seed: u64,
    backend: Backend,
    rng: Rng,
    items: BTreeMap<Key, Item>,
    due: VecDeque<Key>,
    keys: u64,
    deliveries: u64,
    open: usize,
    unclosed: usize,
}

#[derive(Debug, Default)]
struct Item {
    sent: u64,
    in_flight: usize,
    acknowledged: bool,
    /// The delivery after which no more are needed.
    last: Option<u64>,
    closed: bool,
}

/// What an answer asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Then {
    pub(crate) deliver_in: Option<Duration>,
    pub(crate) review_in: Option<Duration>,
}

impl Queue {
    pub(crate) fn new(seed: u64, backend: Backend) -> Queue {
        Queue {
            seed,
            backend,
            rng: plan::stream(seed, Stream::Queue, 0),
            items: BTreeMap::new(),
            due: VecDeque::new(),
            keys: 0,
            deliveries: 0,
            open: 0,
            unclosed: 0,
        }
    }

    /// A new job, unless there are too many.
    pub(crate) fn open(&mut self) {
        if self.open < OPEN {
            let key = plan::key(self.seed, self.keys);
            self.keys += 1;
            self.open += 1;
            self.unclosed += 1;
            self.items.insert(key, Item::default());
            self.due.push_back(key);
        }
    }

    pub(crate) fn is_due(&mut self, key: Key) {
        self.due.push_back(key);
    }

    /// Each key is delivered once more.
    pub(crate) fn once_more(&mut self) {
        self.due.extend(self.items.keys().copied());
    }

    /// The next delivery, of which a worker may get another copy.
    pub(crate) fn take(&mut self, once_more: bool) -> Option<(Delivery, bool)> {
        while let Some(key) = self.due.pop_front() {
            let item = self.items.get_mut(&key).expect("a key of ours");
            if item.closed || item.in_flight >= COPIES {
                continue;
            }
            let twice = self.rng.u8(..16) == 0;
            return Some((self.delivery(key, once_more), twice));
        }
        None
    }

    pub(crate) fn delivery(&mut self, key: Key, once_more: bool) -> Delivery {
        let item = self.items.get_mut(&key).expect("a key of ours");
        let (before, after, fate) = plan::body(self.seed, key, item.sent, self.backend);
        self.deliveries += 1;
        item.sent += 1;
        item.in_flight += 1;
        if once_more && item.acknowledged {
            item.last.get_or_insert(self.deliveries);
        }
        Delivery { id: self.deliveries, key, before, after, fate }
    }

    /// How long to wait before an answer is given up and the key delivered again.
    pub(crate) fn patience(&mut self) -> Duration {
        Duration::from_millis(self.rng.u64(1_500..6_000))
    }

    pub(crate) fn another_worker(&mut self, free: &[usize]) -> Option<usize> {
        (!free.is_empty()).then(|| free[self.rng.usize(..free.len())])
    }

    pub(crate) fn unanswered(&mut self, key: Key) -> Duration {
        self.item(key).in_flight -= 1;
        Duration::from_millis(self.rng.u64(50..2_000))
    }

    pub(crate) fn answered(&mut self, key: Key, delivery: u64, end: &End, peace: bool) -> Then {
        let item = self.item(key);
        item.in_flight -= 1;
        if item.closed {
            return Then::default();
        }
        let is_last = item.last.is_some_and(|last| delivery >= last);
        if end.is_done() {
            let first = !std::mem::replace(&mut item.acknowledged, true);
            item.closed = is_last;
            self.open -= usize::from(first);
            self.unclosed -= usize::from(is_last);
            let again = match peace {
                true if is_last => None,
                true => Some(0..200),
                // As a queue does whose own record of it was lost.
                false => (self.rng.u8(..4) == 0).then_some(0..5_000),
            };
            return Then { deliver_in: again.map(|range| self.within(range)), review_in: None };
        }
        match end {
            End::Refused { retryable: false, .. } => {
                let acknowledged = std::mem::replace(&mut self.item(key).acknowledged, true);
                self.item(key).closed = true;
                self.open -= usize::from(!acknowledged);
                self.unclosed -= 1;
                Then::default()
            }
            End::Refused { kind, .. } if kind == "NeedsReview" => {
                let asks = peace || self.rng.u8(..10) < 6;
                let (soon, later) = if peace { (0..50, 300..600) } else { (0..1_500, 500..2_500) };
                let review_in = asks.then(|| self.within(soon));
                Then { deliver_in: Some(self.within(later)), review_in }
            }
            End::Refused { retry_after, .. } => {
                let wanted = retry_after.unwrap_or(200).min(800);
                Then { deliver_in: Some(self.within(wanted / 2..wanted + 50)), review_in: None }
            }
            _ => Then { deliver_in: Some(self.within(20..300)), review_in: None },
        }
    }

    /// Whether each key was acknowledged, and once more after that.
    pub(crate) fn is_done(&self) -> bool {
        self.unclosed == 0
    }

    pub(crate) fn unclosed(&self) -> impl Iterator<Item = Key> {
        self.items.iter().filter(|(_, item)| !item.closed).map(|(key, _)| *key)
    }

    fn item(&mut self, key: Key) -> &mut Item {
        self.items.get_mut(&key).expect("a key of ours")
    }

    fn within(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.rng.u64(range))
    }
}
