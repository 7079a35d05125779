//! A row of the table, and the one decision table: what a call does about the row it meets.

mod evidence;

use std::{fmt, time::Duration};

use crate::job::{Job, Mode, OnStale};

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

    /// When a claim goes stale.
    #[must_use]
    pub fn stale_at(&self, foreign_stale_after: Duration) -> i64 {
        self.lease_until.unwrap_or_else(|| self.created_at.saturating_add(micros(foreign_stale_after)))
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
    /// Somebody's claim, which `record_after` does not wait for.
    Claimed,
}

/// The decision table: what a call of `terms.job` does about `record` at the database's time `now`.
#[must_use]
pub fn decide(record: Option<&Record>, now: i64, terms: &Terms<'_>) -> Decision {
    let Some(record) = record else { return Decision::Run(Standing::Absent) };
    match &record.status {
        Status::Other(_) => return Decision::Busy { retry_after: None },
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
    if now < stale_at {
        let left = u64::try_from(stale_at - now).unwrap_or(0);
        return Decision::Busy { retry_after: Some(Duration::from_micros(left)) };
    }
    let theirs = record.on_stale.as_deref().map_or(OnStale::Retry, OnStale::from_row);
    let policy = theirs.max(terms.job.stale_policy());
    let taken = u32::try_from(record.takeovers).unwrap_or(0);
    let takes_over = terms.job.mode() == Mode::LockFirst && policy == OnStale::Retry;
    if takes_over && record.owner.is_some() && taken < terms.job.takeover_limit() {
        Decision::Run(Standing::Stale)
    } else {
        Decision::Flag
    }
}

/// Whether the ending of a `record_after` body replaces the row it finds. The first completion stays, and nothing
/// of another template is touched.
#[must_use]
pub fn gives_way(record: &Record, now: i64, completes: bool, job: &Job) -> bool {
    let free = match &record.status {
        Status::Released => return true,
        Status::Processing => true,
        Status::Completed | Status::Failed if record.is_expired(now) => return true,
        Status::Failed => completes,
        Status::Completed | Status::NeedsReview | Status::Other(_) => false,
    };
    free && record.template.as_ref().is_none_or(|template| *template == job.shape())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000_000;
    const FOREIGN: Duration = Duration::from_mins(15);
    const AGE: i64 = 900_000_000;
    const SHAPE: &str = "billing:<>:<>";

    fn job(mode: Mode, policy: OnStale, limit: u32) -> Job {
        let template = &["billing:", ":", ""];
        let job = match mode {
            Mode::LockFirst => Job::lock_first("charge", template, "app", "app.rs", 1),
            Mode::RecordAfter => Job::record_after("charge", template, "app", "app.rs", 1),
            Mode::Transactional => Job::transactional("charge", template, "app", "app.rs", 1),
        };
        job.on_stale(policy).max_takeovers(limit)
    }

    fn row(status: &str) -> Record {
        Record {
            key: "billing:42:2024-06".to_owned(),
            status: Status::from(status),
            job: None,
            template: None,
            mode: None,
            on_stale: None,
            owner: None,
            fence: 1,
            attempt: 1,
            takeovers: 0,
            lease_until: None,
            fingerprint: None,
            result: None,
            error: None,
            worker: None,
            expires_at: None,
            alerted_at: None,
            created_at: NOW,
            completed_at: None,
            now: NOW,
        }
    }

    fn text(word: Option<&str>) -> Option<String> {
        word.map(ToOwned::to_owned)
    }

    const STATUSES: [&str; 6] = ["processing", "completed", "failed", "released", "needs_review", "paused"];

    /// A claim's end and its birth, and for how long its holder still counts as alive.
    const CLAIMS: [(Option<i64>, i64, i64); 8] = [
        (Some(NOW + 5_000_000), NOW - 2 * AGE, 5_000_000),
        (Some(NOW + 1), NOW, 1),
        (Some(NOW), NOW - 1, 0),
        (Some(NOW - 1), NOW - 1, 0),
        (Some(0), NOW, 0),
        (None, NOW, AGE),
        (None, NOW - AGE + 1, 1),
        (None, NOW - AGE, 0),
    ];

    /// The row's word, the caller's policy, and whether both together let a stale claim be taken over.
    const POLICIES: [(Option<&str>, OnStale, bool); 15] = [
        (None, OnStale::Retry, true),
        (None, OnStale::Probe, false),
        (None, OnStale::Alert, false),
        (Some("retry"), OnStale::Retry, true),
        (Some("retry"), OnStale::Probe, false),
        (Some("retry"), OnStale::Alert, false),
        (Some("probe"), OnStale::Retry, false),
        (Some("probe"), OnStale::Probe, false),
        (Some("probe"), OnStale::Alert, false),
        (Some("alert"), OnStale::Retry, false),
        (Some("alert"), OnStale::Probe, false),
        (Some("alert"), OnStale::Alert, false),
        (Some("a word of tomorrow"), OnStale::Retry, false),
        (Some("a word of tomorrow"), OnStale::Probe, false),
        (Some("a word of tomorrow"), OnStale::Alert, false),
    ];

    /// The takeovers so far, the limit, and whether one more is within it.
    const TAKEOVERS: [(i32, u32, bool); 5] =
        [(0, 5, true), (4, 5, true), (5, 5, false), (6, 5, false), (0, 0, false)];

    /// The row's fingerprint, the call's, and whether they contradict each other.
    const FINGERPRINTS: [(Option<&str>, Option<&str>, bool); 5] = [
        (None, None, false),
        (None, Some("a"), false),
        (Some("a"), None, false),
        (Some("a"), Some("a"), false),
        (Some("a"), Some("b"), true),
    ];

    const EXPIRIES: [(Option<i64>, bool); 4] =
        [(None, false), (Some(NOW + 1), false), (Some(NOW), true), (Some(NOW - 1), true)];

    const TEMPLATES: [(Option<&str>, bool); 3] =
        [(None, false), (Some(SHAPE), false), (Some("invoice:<>:<>"), true)];

    fn every_row(mut see: impl FnMut(&Record, &Situation)) {
        for status in STATUSES {
            for (lease_until, created_at, left) in CLAIMS {
                for owned in [true, false] {
                    for (expires_at, expired) in EXPIRIES {
                        for (template, foreign_template) in TEMPLATES {
                            let record = Record {
                                lease_until,
                                created_at,
                                expires_at,
                                owner: owned.then(|| "0f".repeat(16)),
                                template: text(template),
                                ..row(status)
                            };
                            let situation = Situation { status, left, owned, expired, foreign_template };
                            see(&record, &situation);
                        }
                    }
                }
            }
        }
    }

    #[derive(Debug)]
    struct Situation {
        status: &'static str,
        left: i64,
        owned: bool,
        expired: bool,
        foreign_template: bool,
    }

    const MODES: [Mode; 3] = [Mode::LockFirst, Mode::RecordAfter, Mode::Transactional];

    /// The table as the documentation has it: one line for each kind of row, with the answers of `lock_first`,
    /// `record_after` and `transactional`. Exactly one line speaks of any row, so their order means nothing.
    fn table(s: &Situation, frees: bool, mismatch: bool) -> [Decision; 3] {
        use Decision::{Busy, Conflict, Failed, Flag, Mismatch, Replay, Review, Run};

        let past_ttl = s.expired && ["completed", "failed"].contains(&s.status);
        let free = past_ttl || s.status == "released";
        let ours = s.status != "paused" && !free && !s.foreign_template;
        let same = ours && !mismatch;
        let claim = same && s.status == "processing";
        let (alive, stale) = (claim && s.left > 0, claim && s.left == 0);
        let retry_after = Some(Duration::from_micros(s.left.unsigned_abs()));
        let conflict = Conflict { template: "invoice:<>:<>".to_owned() };
        let all = |decision: Decision| [decision.clone(), decision.clone(), decision];
        let claimed = || Run(Standing::Claimed);

        let lines = [
            (s.status == "released", all(Run(Standing::Released))),
            (past_ttl, all(Run(Standing::Expired))),
            (s.status == "paused", all(Busy { retry_after: None })),
            (s.status != "paused" && !free && s.foreign_template, all(conflict)),
            (ours && mismatch, all(Mismatch)),
            (same && s.status == "completed", all(Replay)),
            (same && s.status == "failed", all(Failed)),
            (same && s.status == "needs_review", all(Review)),
            (alive, [Busy { retry_after }, claimed(), Busy { retry_after }]),
            (stale && s.owned && frees, [Run(Standing::Stale), claimed(), Flag]),
            (stale && s.owned && !frees, [Flag, claimed(), Flag]),
            (stale && !s.owned, [Flag, claimed(), Flag]),
        ];
        let mut speaking = lines.into_iter().filter(|(speaks, ..)| *speaks);
        let (_, answers) = speaking.next().unwrap_or_else(|| panic!("no line for {s:?}"));
        assert!(speaking.next().is_none(), "two lines for {s:?}");
        answers
    }

    #[test]
    fn every_row_is_decided_as_the_table_says() {
        let mut seen = 0_u32;
        for (theirs, ours, retries) in POLICIES {
            for (takeovers, limit, more) in TAKEOVERS {
                let jobs = MODES.map(|mode| job(mode, ours, limit));
                for (stored, fingerprint, mismatch) in FINGERPRINTS {
                    every_row(|record, situation| {
                        let record = Record {
                            on_stale: text(theirs),
                            takeovers,
                            fingerprint: text(stored),
                            ..record.clone()
                        };
                        let right = table(situation, retries && more, mismatch);
                        for (job, right) in jobs.iter().zip(right) {
                            let terms = Terms { job, fingerprint, foreign_stale_after: FOREIGN };
                            let decided = decide(Some(&record), NOW, &terms);
                            assert_eq!(decided, right, "{record:#?} met by {job:?} with {fingerprint:?}");
                            seen += 1;
                        }
                    });
                }
            }
        }
        assert_eq!(seen, 6 * 8 * 2 * 4 * 3 * 15 * 5 * 5 * 3);
    }

    #[test]
    fn an_absent_row_runs_whatever_the_job() {
        for (_, policy, _) in POLICIES {
            for mode in MODES {
                let job = job(mode, policy, 0);
                let terms = Terms { job: &job, fingerprint: Some("a"), foreign_stale_after: FOREIGN };
                assert_eq!(decide(None, NOW, &terms), Decision::Run(Standing::Absent));
            }
        }
    }

    #[test]
    fn a_record_gives_way_only_to_what_may_stand_in_its_place() {
        let job = job(Mode::RecordAfter, OnStale::Alert, 5);
        every_row(|record, s| {
            let past_ttl = s.expired && ["completed", "failed"].contains(&s.status);
            let (completion, failure) = match s.status {
                _ if past_ttl => (true, true),
                "released" => (true, true),
                "processing" => (!s.foreign_template, !s.foreign_template),
                "failed" => (!s.foreign_template, false),
                _ => (false, false),
            };
            assert_eq!(gives_way(record, NOW, true, &job), completion, "{record:#?}");
            assert_eq!(gives_way(record, NOW, false, &job), failure, "{record:#?}");
        });
    }

    #[test]
    fn a_holder_is_seen_alive_while_its_lease_runs() {
        every_row(|record, s| {
            let claimed = s.status == "processing" && s.left > 0;
            let reviewed = s.status == "needs_review" && record.lease_until.is_some() && s.left > 0;
            assert_eq!(record.is_alive(NOW, FOREIGN), claimed || reviewed, "{record:#?}");
        });
    }

    #[test]
    fn deadlines_beyond_the_clock_neither_wrap_nor_panic() {
        let extremes = [i64::MIN, -1, 0, i64::MAX];
        let job = job(Mode::LockFirst, OnStale::Retry, 5);
        let terms = Terms { job: &job, fingerprint: None, foreign_stale_after: Duration::MAX };
        for (lease_until, created_at) in extremes.into_iter().flat_map(|a| extremes.map(|b| (a, b))) {
            for lease_until in [Some(lease_until), None] {
                let record = Record { lease_until, created_at, takeovers: -1, ..row("processing") };
                let alive = record.is_alive(NOW, terms.foreign_stale_after);
                assert_eq!(alive, matches!(decide(Some(&record), NOW, &terms), Decision::Busy { .. }));
                assert!(record.evidence().contains("attempt 1"));
            }
        }
        assert_eq!(micros(Duration::MAX), i64::MAX);
    }

    #[test]
    fn a_status_reads_back_as_it_was_written() {
        for word in STATUSES.into_iter().chain(["", "COMPLETED", "completed "]) {
            assert_eq!(Status::from(word).as_str(), word);
        }
        assert_eq!(Status::from("COMPLETED"), Status::Other("COMPLETED".to_owned()));
    }
}
