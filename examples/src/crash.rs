use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Semaphore;

/// A crash drill: the process dies right after an effect, before that effect's completion is recorded.
#[derive(Debug)]
pub struct Crash {
    at: Option<u64>,
    effects: AtomicU64,
    slots: Arc<Semaphore>,
    others: u32,
}

impl Crash {
    pub(crate) fn new(at: Option<u64>, slots: Arc<Semaphore>, others: u32) -> Self {
        Self { at, effects: AtomicU64::new(0), slots, others }
    }

    /// Says that an effect has just happened; does not return from the one that was asked for.
    pub async fn after(&self, effect: &str) {
        let number = self.effects.fetch_add(1, Ordering::SeqCst) + 1;
        if self.at != Some(number) {
            return;
        }
        // Slots are given out in the order of the requests. So no further body starts, and when all the other slots
        // are here, the bodies that held them are recorded.
        let _others = self.slots.acquire_many(self.others).await;
        eprintln!("dying after effect {number}: {effect}");
        process::abort();
    }

    /// The effect that did not come, in a run that has survived.
    #[must_use]
    pub fn missed(&self) -> Option<String> {
        let number = self.at?;
        let effects = self.effects.load(Ordering::SeqCst);
        Some(format!(
            "nothing died: there were {effects} effects in this run, and the crash was due in number {number}"
        ))
    }
}
