//! A row of the table, and the one decision table: what a call does about the row it meets.

mod evidence;

use std::{fmt, time::Duration};

use crate::{
    job::{Job, Mode, OnStale},
    key::Key,
};

/// The state of a key, as its row says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Claimed; the lease tells whether the holder is alive.
    Processing,
    /// Done; repeats are answered from the row.
    Completed,
    /// Failed for good.
    Failed,
    /// Free for the next call; the row keeps the history.
    Released,
    /// Stopped until a person decides.
    NeedsReview,
    /// A word of a newer version or of somebody else: not ours to touch.
    Other(String),
}

impl Status {
    /// The word that stands in the row.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::NeedsReview => "needs_review",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for Status {
    fn from(word: &str) -> Self {
        match word {
            "processing" => Self::Processing,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "released" => Self::Released,
            "needs_review" => Self::NeedsReview,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of the table, as it stood at [`now`](Self::now). Times are microseconds since 1970 on the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The key as it is stored: with its namespace, long ones by their digest.
    pub key: String,
    /// The state.
    pub status: Status,
    /// The label of the job that wrote the row last.
    pub job: Option<String>,
    /// The shape of that job's template: `billing:<>:<>`.
    pub template: Option<String>,
    /// That job's mode.
    pub mode: Option<String>,
    /// That job's stale policy.
    pub on_stale: Option<String>,
    /// The execution that wrote the row last, 32 hex digits. A foreign worker's row has none.
    pub owner: Option<String>,
    /// The fence: it only grows for a key.
    pub fence: i64,
    /// How many executions were begun since the key was last free of history.
    pub attempt: i32,
    /// How many of them were takeovers.
    pub takeovers: i32,
    /// When the lease ends.
    pub lease_until: Option<i64>,
    /// The fingerprint of the arguments.
    pub fingerprint: Option<String>,
    /// The stored result, JSON text.
    pub result: Option<String>,
    /// The last error's text, or why the key needs review.
    pub error: Option<String>,
    /// The label of the worker that wrote the row last.
    pub worker: Option<String>,
    /// When a finished row stops to count.
    pub expires_at: Option<i64>,
    /// When a person was told.
    pub alerted_at: Option<i64>,
    /// When the key was first claimed.
    pub created_at: i64,
    /// When it was completed.
    pub completed_at: Option<i64>,
    /// The database's time when the row was read.
    pub now: i64,
    /// The rows of the job's phases, those that were begun first before the others. [`Idem::lookup`](crate::Idem::lookup)
    /// reads them; a row that was read in passing has none.
    pub phases: Vec<Record>,
}

impl Record {
    /// What identifies this state of the row for a conditional write.
    #[must_use]
    pub fn version(&self) -> Version {
        Version {
            status: self.status.clone(),
            owner: self.owner.clone(),
            fence: self.fence,
            lease_until: self.lease_until,
            created_at: self.created_at,
        }
    }

    /// Whether this is the row of one execution.
    #[must_use]
    pub fn is_of(&self, owner: &str, fence: i64) -> bool {
        self.owner.as_deref() == Some(owner) && self.fence == fence
    }

    /// Whether the holder is seen alive: its lease runs, also under review, where a holder that was only silent for a
    /// while goes on.
    #[must_use]
    pub fn is_alive(&self, now: i64, foreign_stale_after: Duration) -> bool {
        match self.status {
            Status::Processing => now < self.stale_at(foreign_stale_after),
            Status::NeedsReview => self.lease_until.is_some_and(|end| now < end),
            _ => false,
        }
    }

    /// Whether this is a claim that a person has to look at once it is stale, whoever calls: nobody owns it, or its
    /// policy says so.
    #[must_use]
    pub fn waits_for_review(&self) -> bool {
        let policy = self.on_stale.as_deref().map(OnStale::from_row);
        self.status == Status::Processing && (self.owner.is_none() || policy == Some(OnStale::Alert))
    }

    /// When the execution began, as far as the row tells: a phase has the fence of its job, which was claimed before.
    pub(crate) fn claimed_at(&self) -> i64 {
        self.fence.max(self.created_at)
    }

    /// When a claim goes stale.
    #[must_use]
    pub fn stale_at(&self, foreign_stale_after: Duration) -> i64 {
        self.lease_until.unwrap_or_else(|| self.created_at.saturating_add(micros(foreign_stale_after)))
    }

    /// Whether this is the row of a phase: `/` stands before a phase's name, and in no other key and no other template.
    #[must_use]
    pub fn is_phase(&self) -> bool {
        self.key.contains('/') || self.template.as_ref().is_some_and(|template| template.contains('/'))
    }

    /// Of a phase's row, the name of the phase with what tells it from its like: `charge`, `line:42`. Of one whose key is
    /// too long to be stored as it is, as its template has it.
    #[must_use]
    pub fn phase_name(&self) -> Option<&str> {
        let after_mark = |text: &'_ str| text.rfind('/').map(|at| at + 1);
        match after_mark(&self.key) {
            Some(at) => Some(&self.key[at..]),
            None => self.template.as_deref().and_then(|template| Some(&template[after_mark(template)?..])),
        }
    }

    /// Whether this row, whose key keeps nothing of the phase, is that of a phase of a job: what its template has of the
    /// phase makes of the job's key this one's, or the execution is the same.
    pub(crate) fn is_long_phase_of(&self, job: &Self, key: &Key) -> bool {
        let templates = self.template.as_deref().zip(job.template.as_deref());
        let name = templates.and_then(|(ours, theirs)| ours.strip_prefix(theirs)?.strip_prefix('/'));
        let is_named = |name: &str| *key.phase(&Key::raw(name)).stored() == *self.key;
        let is_same = || self.owner.is_some() && self.owner == job.owner;
        name.is_some_and(|name| is_named(name) || is_same()) && self.is_born_under(job.created_at)
    }

    /// Whether a phase's row was written under the job's row that was born then. A foreign worker's row does not say.
    fn is_born_under(&self, born: i64) -> bool {
        self.fingerprint.as_ref().is_none_or(|birth| *birth == born.to_string())
    }

    fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// The state of a row that a conditional write expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The state.
    pub status: Status,
    /// The owner.
    pub owner: Option<String>,
    /// The fence.
    pub fence: i64,
    /// The end of the lease: a heartbeat changes it.
    pub lease_until: Option<i64>,
    /// When the row began: tells two foreign claims apart.
    pub created_at: i64,
}

/// A duration in microseconds, as deadlines are stored.
#[must_use]
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// What a call brings to the decision.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The job.
    pub job: &'a Job,
    /// The fingerprint of this call's arguments.
    pub fingerprint: Option<&'a str>,
    /// When a claim without owner counts as stale.
    pub foreign_stale_after: Duration,
    /// Of a phase: the execution that enters it.
    pub under: Option<Under<'a>>,
}

/// The execution of a job that enters a phase.
#[derive(Debug, Clone, Copy)]
pub struct Under<'a> {
    /// The owner of the job's claim.
    pub owner: &'a str,
    /// Its fence.
    pub fence: i64,
    /// When the job's row was born; `None` is in this execution, before which it has no phases.
    pub born: Option<i64>,
}

impl Under<'_> {
    /// Whether a phase's row is of an earlier life of the job, whose own row has expired or is gone.
    pub(crate) fn outlives(&self, phase: &Record) -> bool {
        match self.born {
            Some(born) => !phase.is_born_under(born),
            None => phase.fingerprint.is_some() && phase.fence < self.fence,
        }
    }

    /// Whether a claim of the phase is that of an earlier execution of the job: who holds the job's claim is the only one
    /// to enter its phases. That of a later one, by its fence, is an heir's.
    fn succeeds(&self, phase: &Record) -> bool {
        phase.owner.as_ref().is_some_and(|owner| owner != self.owner) && phase.fence <= self.fence
    }
}

/// What a call does about the row it meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Run: nothing stands in the way. `lock_first` claims the row as it is first.
    Run(Standing),
    /// Answer from the row.
    Replay,
    /// Another template wrote the row.
    Conflict {
        /// That template's shape.
        template: String,
    },
    /// Other arguments wrote the row.
    Mismatch,
    /// Somebody holds the key and is alive, or its state is not ours to touch.
    Busy {
        /// Until when, at the latest, as things are.
        retry_after: Option<Duration>,
    },
    /// A person has to decide; the row does not say so yet.
    Flag,
    /// A person has to decide, and the row says so.
    Review,
    /// The job failed for good.
    Failed,
}

/// What a claim finds in its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No row.
    Absent,
    /// A row past its ttl: a new life of the key.
    Expired,
    /// A released row: its history goes on.
    Released,
    /// A stale claim: its history goes on, as a takeover.
    Stale,
    /// A stale claim of which nobody knows whether its effect happened: taken over as well, and asked about before
    /// anything runs.
    Doubtful,
    /// Somebody's claim, which `record_after` does not wait for.
    Claimed,
}

impl Standing {
    /// Whether the claim takes the place of an execution that stopped half way.
    #[must_use]
    pub fn takes_over(self) -> bool {
        matches!(self, Self::Stale | Self::Doubtful)
    }
}

/// The decision table: what a call of `terms.job` does about `record` at the database's time `now`.
#[must_use]
pub fn decide(record: Option<&Record>, now: i64, terms: &Terms<'_>) -> Decision {
    let Some(record) = record else { return Decision::Run(Standing::Absent) };
    match &record.status {
        Status::Other(_) => return Decision::Busy { retry_after: None },
        _ if terms.under.is_some_and(|under| under.outlives(record)) => {
            return Decision::Run(Standing::Expired);
        }
        Status::Released => return Decision::Run(Standing::Released),
        Status::Completed | Status::Failed if record.is_expired(now) => {
            return Decision::Run(Standing::Expired);
        }
        _ => {}
    }
    if let Some(template) = &record.template
        && *template != terms.job.shape()
    {
        return Decision::Conflict { template: template.clone() };
    }
    if let (Some(theirs), Some(ours)) = (&record.fingerprint, terms.fingerprint)
        && theirs != ours
    {
        return Decision::Mismatch;
    }
    match &record.status {
        Status::Completed => Decision::Replay,
        Status::Failed => Decision::Failed,
        Status::NeedsReview => Decision::Review,
        _ => match terms.job.mode() {
            Mode::RecordAfter => Decision::Run(Standing::Claimed),
            Mode::LockFirst | Mode::Transactional => decide_claim(record, now, terms),
        },
    }
}

/// The rows of the table that speak of a claim.
fn decide_claim(record: &Record, now: i64, terms: &Terms<'_>) -> Decision {
    let stale_at = record.stale_at(terms.foreign_stale_after);
    let is_succeeded = terms.under.is_some_and(|under| under.succeeds(record));
    if now < stale_at && !is_succeeded {
        let left = u64::try_from(stale_at - now).unwrap_or(0);
        return Decision::Busy { retry_after: Some(Duration::from_micros(left)) };
    }
    let theirs = record.on_stale.as_deref().map_or(OnStale::Retry, OnStale::from_row);
    let ours = terms.job.stale_policy();
    let policy = theirs.max(ours);
    let taken = u32::try_from(record.takeovers).unwrap_or(0);
    let may_take_over =
        terms.job.mode() == Mode::LockFirst && record.owner.is_some() && taken < terms.job.takeover_limit();
    match policy {
        OnStale::Retry if may_take_over => Decision::Run(Standing::Stale),
        // Only a job that has a probe can ask.
        OnStale::Probe if may_take_over && ours == OnStale::Probe => Decision::Run(Standing::Doubtful),
        _ => Decision::Flag,
    }
}

/// Whether the ending of a `record_after` body replaces the row it finds. The first completion stays, and nothing
/// of another template is touched.
#[must_use]
pub fn gives_way(record: &Record, now: i64, completes: bool, job: &Job, under: Option<Under<'_>>) -> bool {
    let free = match &record.status {
        Status::Other(_) => false,
        _ if under.is_some_and(|under| under.outlives(record)) => return true,
        Status::Released => return true,
        Status::Processing => true,
        Status::Completed | Status::Failed if record.is_expired(now) => return true,
        Status::Failed => completes,
        Status::Completed | Status::NeedsReview => false,
    };
    free && record.template.as_ref().is_none_or(|template| *template == job.shape())
}

#[cfg(test)]
mod tests;
