//! The watcher: finds the stale claims of any worker, turns those over that a person has to look at, and tells them.
//!
//! A look is one statement. What it finds is acted on only if it was seen before and has not changed since, for long
//! enough that a holder who is alive would have renewed its lease; and each write names the state, the owner, the fence
//! and the lease that were seen. Nothing is acted on right after an outage of the database: those who could not renew
//! their leases during it come first.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use crate::{
    alert::Hook,
    jobs,
    key::Key,
    metrics,
    record::{Record, Status, Version},
    review::{Reviewer, a_moment_later, turned_over},
    service::{Failure, LONGEST_STATEMENT, Patience, Service, WeakService, within},
    store::{Answer, StoreError, Watch},
};

/// The most rows of each kind that one look reads.
const LIMIT: u32 = 256;
/// The lease of a job that this process does not know, at most.
const UNKNOWN_LEASE: Duration = Duration::from_mins(1);
/// The longest that a stale claim is watched for a sign of life: a process does not live for ever. A database's clock that
/// steps forward makes the claims of leases that are three times as long look stale until their next heartbeat.
const LONGEST_DOUBT: Duration = Duration::from_mins(5);
/// What a heartbeat may take to arrive, at most.
const DELAY: Duration = Duration::from_secs(1);
/// How long what was turned over waits for others, to be told with them.
const TOGETHER: Duration = Duration::from_secs(1);
/// The shortest pause between two looks.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// How a watcher goes about it.
#[derive(Debug, Clone)]
pub(crate) struct Rounds {
    /// The pause between two looks.
    pub(crate) every: Duration,
    /// How long a row that needs review may say that nobody was told, before somebody else tells.
    pub(crate) untold_for: Duration,
}

/// Watches for as long as there is somebody to watch for.
pub(crate) struct Watcher {
    service: WeakService,
    hook: Hook,
    worker: String,
    rounds: Rounds,
    /// The leases of the jobs that this process knows.
    leases: HashMap<&'static str, Duration>,
    sightings: HashMap<String, Sighting>,
    /// How many signs of trouble with the store there had been at the last look.
    troubles: u64,
    chance: RandomState,
}

/// A row that was seen and has not changed since.
struct Sighting {
    version: Version,
    first: Instant,
}

impl Sighting {
    /// Whether this row is the one that was seen. A holder that is alive after all goes on heartbeating under review,
    /// which makes it no other; the word of somebody who tells does.
    fn is_of(&self, row: &Record) -> bool {
        let version = row.version();
        let is_told = row.lease_until == Some(a_moment_later(self.version.lease_until, row));
        let is_alive = row.lease_until.is_some_and(|end| row.now < end);
        let heartbeats = row.status == Status::NeedsReview && is_alive && !is_told;
        let lease_until = if heartbeats { self.version.lease_until } else { version.lease_until };
        Version { lease_until, ..version } == self.version
    }
}

impl Watcher {
    pub(crate) fn new(reviewer: &Reviewer, mut rounds: Rounds) -> Self {
        // Nobody is overtaken before they have had the time to say that they are at it.
        rounds.untold_for = rounds.untold_for.max(5 * rounds.every.max(SHORTEST_PAUSE));
        Self {
            service: reviewer.service.downgrade(),
            hook: reviewer.hook.clone(),
            worker: reviewer.worker.clone(),
            rounds,
            leases: jobs::all().map(|job| (job.name(), job.lease())).collect(),
            sightings: HashMap::new(),
            troubles: 0,
            chance: RandomState::new(),
        }
    }

    pub(crate) async fn watch(mut self) {
        // Processes that were started together need not look together.
        let mut pause = self.rounds.every.mul_f64(self.chance());
        loop {
            tokio::time::sleep(pause.max(SHORTEST_PAUSE)).await;
            // No handle is kept over the pause: the last one of the application ends the service.
            let Some(service) = self.service.upgrade() else { return };
            let reviewer = Reviewer { service, hook: self.hook.clone(), worker: self.worker.clone() };
            let soon = self.look(&reviewer).await;
            pause = soon.map_or(Duration::MAX, |soon| soon.saturating_duration_since(Instant::now()));
            pause = pause.min(self.rounds.every.mul_f64(0.75 + self.chance() / 2.0));
            if self.hook.is_busy() {
                pause = pause.min(self.rounds.untold_for / 4);
            }
        }
    }

    /// A number from 0 to 1.
    fn chance(&self) -> f64 {
        let bits = u32::try_from(self.chance.hash_one(Instant::now()) >> 32).unwrap_or(0);
        f64::from(bits) / f64::from(u32::MAX)
    }

    /// One look, and what follows from it. Answers when the next one is due, where something waits for it.
    async fn look(&mut self, reviewer: &Reviewer) -> Option<Instant> {
        let began = Instant::now();
        let service = &reviewer.service;
        let rows = match self.rows(service).await {
            Ok(rows) => rows,
            Err(error) => {
                metrics::look_failed();
                tracing::warn!(%error, "cannot look for stale claims; trying again");
                self.sightings.clear();
                return None;
            }
        };
        let (troubles, now) = (service.troubles(), Instant::now());
        if std::mem::replace(&mut self.troubles, troubles) != troubles {
            self.sightings.clear();
        }
        self.note(&rows, now);
        let stale = rows.iter().filter(|row| row.status == Status::Processing).count();
        let mut soon: Option<Instant> = None;
        let mut to_tell = Vec::new();
        for row in rows {
            let Some(due) = self.due(&row, service, now) else { continue };
            if due <= now {
                // Whatever becomes of it, it is another row from here on.
                self.sightings.remove(&row.key);
                to_tell.extend(self.act(reviewer, row).await);
                if began.elapsed() >= TOGETHER {
                    reviewer.tell(std::mem::take(&mut to_tell));
                }
            } else {
                soon = Some(soon.map_or(due, |soon| soon.min(due)));
            }
        }
        reviewer.tell(to_tell);
        metrics::looked(stale, began.elapsed());
        soon
    }

    async fn rows(&self, service: &Service) -> Result<Vec<Record>, StoreError> {
        let foreign_stale_after = service.limits().foreign_stale_after;
        let watch = Watch { foreign_stale_after, untold: self.hook.is_set(), limit: LIMIT };
        within(LONGEST_STATEMENT, "looking for stale claims", service.store().watch(&watch)).await
    }

    /// Keeps what is as it was, and forgets all else.
    fn note(&mut self, rows: &[Record], now: Instant) {
        let mut before = std::mem::take(&mut self.sightings);
        self.sightings = rows
            .iter()
            .map(|row| {
                let same = before.remove(&row.key).filter(|sighting| sighting.is_of(row));
                let first = same.map_or(now, |sighting| sighting.first);
                (row.key.clone(), Sighting { version: row.version(), first })
            })
            .collect();
    }

    /// When a row is to be acted on, if it stays as it is.
    fn due(&self, row: &Record, service: &Service, now: Instant) -> Option<Instant> {
        let sighting = self.sightings.get(&row.key)?;
        Some(match row.status {
            Status::Processing => {
                let foreign = service.limits().foreign_stale_after;
                let patience = self.patience(row, foreign);
                let since = Duration::from_micros(
                    row.now.saturating_sub(row.stale_at(foreign)).max(0).unsigned_abs(),
                );
                let doubt = (patience + DELAY.min(patience / 4)).min(LONGEST_DOUBT);
                (now + patience.saturating_sub(since)).max(sighting.first + doubt)
            }
            // Whoever tells renews its word at a third of the others' patience.
            _ if self.hook.is_telling(row) => sighting.first + self.rounds.untold_for / 3,
            _ => sighting.first + self.rounds.untold_for,
        })
    }

    /// A third of the claim's lease. Of a job that this process does not know, the row tells how long the lease was if
    /// it was never renewed.
    fn patience(&self, row: &Record, foreign: Duration) -> Duration {
        let known = row.job.as_deref().and_then(|job| self.leases.get(job)).copied();
        let lease = match (known, row.lease_until) {
            (Some(lease), _) => lease,
            (None, Some(end)) => {
                Duration::from_micros(end.saturating_sub(row.claimed_at()).max(0).unsigned_abs())
                    .min(UNKNOWN_LEASE)
            }
            (None, None) => foreign.min(UNKNOWN_LEASE),
        };
        lease / 3
    }

    /// Turns a claim over, or takes it on to tell of one. Answers the row that this process is to tell of.
    async fn act(&self, reviewer: &Reviewer, row: Record) -> Option<Record> {
        // One that cannot be written now, because somebody holds it locked, must not keep the others waiting.
        let patience = Patience::new(Instant::now(), None);
        let done = if row.status == Status::Processing {
            let row = reviewer.with_phases(&Key::raw(&row.key), row).await;
            let turned = reviewer.turn_over(&row, patience).await;
            turned.map(|answer| match answer {
                Answer::Written { .. } => {
                    tracing::error!(
                        job = row.job,
                        worker = row.worker,
                        attempt = row.attempt,
                        "needs review: its worker stopped half way"
                    );
                    Some(turned_over(row))
                }
                Answer::Found(_) | Answer::Gone => None,
            })
        } else {
            let is_ours = self.hook.is_telling(&row);
            let won = reviewer.claim_telling(&row, patience).await;
            won.map(|won| won.filter(|_| !is_ours))
        };
        done.unwrap_or_else(|failure: Failure| {
            tracing::warn!(?failure, "a stale claim could not be turned over; trying again");
            None
        })
    }
}
