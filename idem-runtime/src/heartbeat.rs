//! Heartbeats: the executions of this process that are alive, and the loop that renews the leases of their claims.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{
    alert::{Alert, AlertKind, Hook},
    claim::{Claim, Lease},
    service::{LONGEST_STATEMENT, within},
    store::{Renew, Renewal, Store},
};

/// The executions of this process whose bodies run.
#[derive(Debug, Default)]
pub(crate) struct Live {
    executions: Mutex<Executions>,
    /// A claim was added that is due before the loop would wake up.
    sooner: Notify,
    /// The last execution is gone.
    empty: Notify,
    /// How many heartbeats the store did not answer, or not well.
    troubles: AtomicU64,
    /// When a claim is overdue; `None` is after so many of its leases.
    overdue_after: Option<Duration>,
    hook: Hook,
}

/// After how many of its leases a claim is overdue.
const OVERDUE_LEASES: u32 = 10;

#[derive(Debug, Default)]
struct Executions {
    next_id: u64,
    keys: HashMap<u64, Arc<str>>,
    /// Those of them that hold a claim.
    claims: HashMap<u64, Entry>,
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
    /// When the body has been at it for so long that a person is told, once.
    overdue: Option<Instant>,
}

impl Entry {
    fn new(claim: &Claim, heartbeat: bool, overdue_after: Option<Duration>) -> Self {
        let lease = Arc::clone(claim.lease());
        let overdue_after = overdue_after.unwrap_or(lease.term().saturating_mul(OVERDUE_LEASES));
        Self {
            // Without a heartbeat the lease ends by itself.
            overdue: if heartbeat { lease.began().checked_add(overdue_after) } else { None },
            key: Arc::clone(claim.key()),
            owner: claim.owner().to_owned(),
            fence: claim.fence(),
            due: lease.began() + lease.term() / 3,
            lease,
            heartbeat,
        }
    }

    /// When the loop has to look at this claim, from `now` on.
    fn wakes(&self, now: Instant) -> Option<Instant> {
        let ends = self.lease.ends();
        let ends = (ends > now).then_some(ends);
        let due = self.heartbeat.then_some(self.due);
        [ends, due, self.overdue].into_iter().flatten().min()
    }
}

/// A place among the live executions; leaving is dropping it.
#[derive(Debug)]
pub(crate) struct Membership {
    live: Arc<Live>,
    id: u64,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut executions = self.live.lock();
        executions.claims.remove(&self.id);
        executions.keys.remove(&self.id);
        if executions.keys.is_empty() {
            drop(executions);
            self.live.empty.notify_waiters();
        }
    }
}

impl Live {
    pub(crate) fn new(overdue_after: Option<Duration>, hook: Hook) -> Self {
        Self { overdue_after, hook, ..Self::default() }
    }

    pub(crate) fn troubles(&self) -> u64 {
        self.troubles.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Executions> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an execution. If it holds a claim, its lease is watched, and renewed every third of it where the job wants
    /// that, until the membership is dropped.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: &Arc<str>,
        claim: Option<&Claim>,
        heartbeat: bool,
        is_phase: bool,
    ) -> Membership {
        let mut entry = claim.map(|claim| Entry::new(claim, heartbeat, self.overdue_after));
        if let Some(entry) = entry.as_mut().filter(|_| is_phase) {
            // A person is told of its job.
            entry.overdue = None;
        }
        let wakes = entry.as_ref().and_then(|entry| entry.wakes(Instant::now()));
        let mut executions = self.lock();
        executions.next_id += 1;
        let id = executions.next_id;
        executions.keys.insert(id, Arc::clone(key));
        executions.claims.extend(entry.map(|entry| (id, entry)));
        let sooner = wakes.is_some_and(|wakes| executions.wakes.is_none_or(|at| wakes < at));
        drop(executions);
        if sooner {
            self.sooner.notify_one();
        }
        Membership { live: Arc::clone(self), id }
    }

    /// The keys whose bodies run.
    pub(crate) fn keys(&self) -> Vec<Arc<str>> {
        self.lock().keys.values().map(Arc::clone).collect()
    }

    /// Resolves when no body runs.
    pub(crate) async fn idle(&self) {
        loop {
            let mut empty = std::pin::pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.lock().keys.is_empty() {
                return;
            }
            empty.await;
        }
    }

    /// Declares every lease lost: the thread that would renew them is gone.
    pub(crate) fn lose_all(&self) {
        for entry in self.lock().claims.values() {
            entry.lease.lose();
        }
    }

    /// What is due now, and when to look again.
    fn due(&self, now: Instant) -> (Vec<(u64, Entry)>, Option<Instant>) {
        let mut executions = self.lock();
        let mut due = Vec::new();
        for (&id, entry) in &mut executions.claims {
            if entry.lease.ends() <= now {
                entry.lease.lapse();
            }
            if entry.heartbeat && entry.due <= now {
                entry.due = now + entry.lease.term() / 3;
                due.push((id, entry.clone()));
            }
        }
        let wakes = executions.claims.values().filter_map(|entry| entry.wakes(now)).min();
        executions.wakes = wakes;
        (due, wakes)
    }

    /// Renewals that failed are tried again soon.
    fn again_soon(&self, ids: &[u64], now: Instant) {
        let mut executions = self.lock();
        for id in ids {
            if let Some(entry) = executions.claims.get_mut(id) {
                entry.due = now + (entry.lease.term() / 12).min(Duration::from_secs(1));
            }
        }
        drop(executions);
        self.sooner.notify_one();
    }

    /// Renews what is due, one statement for all, for as long as it is polled.
    pub(crate) async fn beat(self: Arc<Self>, store: Arc<dyn Store>) {
        loop {
            let now = Instant::now();
            for (id, entry) in self.overdue(now) {
                tokio::spawn(Arc::clone(&self).tell_overdue(Arc::clone(&store), id, entry));
            }
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

    /// The claims that have come to be overdue, each once.
    fn overdue(&self, now: Instant) -> Vec<(u64, Entry)> {
        let mut executions = self.lock();
        let claims = executions.claims.iter_mut();
        let overdue = |(id, entry): (&u64, &mut Entry)| {
            entry.overdue.take_if(|at| *at <= now).map(|_| (*id, entry.clone()))
        };
        claims.filter_map(overdue).collect()
    }

    /// Tells a person of a claim that is renewed on and on; again later, where the row cannot be read.
    async fn tell_overdue(self: Arc<Self>, store: Arc<dyn Store>, id: u64, entry: Entry) {
        let reading = store.read(std::slice::from_ref(&entry.key));
        let Ok(records) = within(LONGEST_STATEMENT, "reading an overdue claim", reading).await else {
            if let Some(entry) = self.lock().claims.get_mut(&id) {
                entry.overdue = Some(Instant::now() + LONGEST_STATEMENT);
            }
            return self.sooner.notify_one();
        };
        let record = records.into_iter().flatten().next();
        let Some(record) = record.filter(|record| record.is_of(&entry.owner, entry.fence)) else { return };
        tracing::warn!(job = record.job, "overdue: a job is alive and goes on for very long");
        let told: Box<dyn FnOnce() + Send> = Box::new(|| {});
        self.hook.call([(Alert::of(AlertKind::Overdue, &record), told)]);
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
        let answer = within(shortest / 4, "renewing leases", store.renew(&batch)).await;
        let renewals = answer.unwrap_or_else(|error| {
            self.troubles.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, claims = due.len(), "heartbeat failed; trying again");
            vec![Renewal::Skipped; due.len()]
        });
        let mut skipped = Vec::new();
        for ((id, entry), renewal) in due.iter().zip(renewals) {
            match renewal {
                Renewal::Renewed => entry.lease.renew(sent),
                Renewal::Lost => entry.lease.lose(),
                Renewal::Skipped => skipped.push(*id),
            }
        }
        if !skipped.is_empty() {
            self.again_soon(&skipped, Instant::now());
        }
    }
}
