//! Heartbeats: the claims of this process that are alive, and the loop that renews their leases.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{
    claim::{Claim, Lease},
    store::{Renew, Renewal, Store},
};

/// The claims of this process whose bodies run.
#[derive(Debug, Default)]
pub(crate) struct Live {
    claims: Mutex<Claims>,
    /// A claim was added that is due before the loop would wake up.
    sooner: Notify,
    /// The last claim is gone.
    empty: Notify,
}

#[derive(Debug, Default)]
struct Claims {
    next_id: u64,
    entries: HashMap<u64, Entry>,
    /// When the loop wakes up by itself.
    wakes: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Entry {
    key: Arc<str>,
    owner: String,
    fence: i64,
    lease: Arc<Lease>,
    heartbeat: bool,
    /// When the next renewal is due.
    due: Instant,
}

impl Entry {
    /// When the loop has to look at this claim.
    fn wakes(&self) -> Instant {
        if self.heartbeat { self.due } else { self.lease.ends() }
    }
}

/// A place among the live claims; leaving is dropping it.
#[derive(Debug)]
pub(crate) struct Membership {
    live: Arc<Live>,
    id: u64,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut claims = self.live.lock();
        claims.entries.remove(&self.id);
        if claims.entries.is_empty() {
            drop(claims);
            self.live.empty.notify_waiters();
        }
    }
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a claim; its lease is renewed every third of it, until the membership is dropped.
    pub(crate) fn join(self: &Arc<Self>, claim: &Claim, heartbeat: bool) -> Membership {
        let lease = Arc::clone(claim.lease());
        let due = lease.ends() - lease.term() / 3 * 2;
        let entry = Entry {
            key: Arc::clone(claim.key()),
            owner: claim.owner().to_owned(),
            fence: claim.fence(),
            lease,
            heartbeat,
            due,
        };
        let wakes = entry.wakes();
        let mut claims = self.lock();
        claims.next_id += 1;
        let id = claims.next_id;
        claims.entries.insert(id, entry);
        let sooner = claims.wakes.is_none_or(|at| wakes < at);
        drop(claims);
        if sooner {
            self.sooner.notify_one();
        }
        Membership { live: Arc::clone(self), id }
    }

    /// The keys of the claims whose bodies run.
    pub(crate) fn keys(&self) -> Vec<Arc<str>> {
        self.lock().entries.values().map(|entry| Arc::clone(&entry.key)).collect()
    }

    /// Resolves when no body runs.
    pub(crate) async fn idle(&self) {
        loop {
            let mut empty = std::pin::pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.lock().entries.is_empty() {
                return;
            }
            empty.await;
        }
    }

    /// Declares every lease lost: the thread that would renew them is gone.
    pub(crate) fn lose_all(&self) {
        for entry in self.lock().entries.values() {
            entry.lease.lose();
        }
    }

    /// What is due now, and when to look again.
    fn due(&self, now: Instant) -> (Vec<(u64, Entry)>, Option<Instant>) {
        let mut claims = self.lock();
        let mut due = Vec::new();
        for (&id, entry) in &mut claims.entries {
            if entry.lease.ends() <= now {
                entry.lease.lose();
            }
            if entry.heartbeat && entry.due <= now {
                entry.due = now + entry.lease.term() / 3;
                due.push((id, entry.clone()));
            }
        }
        let wakes = claims
            .entries
            .values()
            .flat_map(|entry| {
                let ends = entry.lease.ends();
                [entry.heartbeat.then_some(entry.due), (ends > now).then_some(ends)]
            })
            .flatten()
            .min();
        claims.wakes = wakes;
        (due, wakes)
    }

    /// Forgets when it was due: a renewal that failed is tried again soon.
    fn again_soon(&self, ids: impl Iterator<Item = u64>, now: Instant) {
        let mut claims = self.lock();
        for id in ids {
            if let Some(entry) = claims.entries.get_mut(&id) {
                entry.due = now + (entry.lease.term() / 12).min(Duration::from_secs(1));
            }
        }
    }

    /// Renews what is due, one statement for all, for as long as it is polled.
    pub(crate) async fn beat(self: Arc<Self>, store: Arc<dyn Store>) {
        loop {
            let now = Instant::now();
            let (due, wakes) = self.due(now);
            if !due.is_empty() {
                tokio::spawn(Arc::clone(&self).renew(Arc::clone(&store), due, now));
            }
            match wakes {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at.into(), self.sooner.notified()).await;
                }
                None => self.sooner.notified().await,
            }
        }
    }

    async fn renew(self: Arc<Self>, store: Arc<dyn Store>, mut due: Vec<(u64, Entry)>, sent: Instant) {
        due.sort_unstable_by(|a, b| a.1.key.cmp(&b.1.key));
        let batch: Vec<Renew> = due
            .iter()
            .map(|(_, entry)| Renew {
                key: Arc::clone(&entry.key),
                owner: entry.owner.clone(),
                fence: entry.fence,
                lease: entry.lease.term(),
            })
            .collect();
        let shortest = due.iter().map(|(_, entry)| entry.lease.term()).min().unwrap_or_default();
        let answer = tokio::time::timeout(shortest / 4, store.renew(&batch)).await;
        let renewals = match answer {
            Ok(Ok(renewals)) => renewals,
            Ok(Err(error)) => {
                tracing::warn!(%error, claims = due.len(), "heartbeat failed; trying again");
                vec![Renewal::Skipped; due.len()]
            }
            Err(_) => {
                tracing::warn!(claims = due.len(), "heartbeat unanswered; trying again");
                vec![Renewal::Skipped; due.len()]
            }
        };
        let mut skipped = Vec::new();
        for ((id, entry), renewal) in due.iter().zip(renewals) {
            match renewal {
                Renewal::Renewed => entry.lease.renew(sent),
                Renewal::Lost => entry.lease.lose(),
                Renewal::Skipped => skipped.push(*id),
            }
        }
        if !skipped.is_empty() {
            self.again_soon(skipped.into_iter(), Instant::now());
            self.sooner.notify_one();
        }
    }
}
