//! Writes: what each of them asks of the store, and what the history says of it.

use std::sync::Arc;

use idem_runtime::{
    Job, Status,
    record::{Decision, Standing, Terms, decide, gives_way},
    store::{Answer, Ending, Finish, Insert, Moment, NewRow, Renew, Renewal, Replace},
};
use idem_tests::table::{Done, Row};

use crate::{
    job::{FOREIGN_STALE_AFTER, RELEASED_FOR},
    mutant::Mutant,
    person::Deed,
    protocol::Protocol,
    state::{KEYS, State},
};

/// An execution that was granted a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Execution {
    pub(crate) owner: u8,
    pub(crate) fence: i64,
    /// The life of its key that it belongs to.
    pub(crate) life: u8,
}

/// A write with what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) key: usize,
    pub(crate) job: usize,
    pub(crate) write: Write,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    /// Claims an absent key.
    Claim { owner: u8 },
    /// Claims a row as it was seen.
    Take { owner: u8, seen: Row },
    /// Turns a stale claim as it was seen over to a person.
    Flag { seen: Row },
    /// Ends an execution.
    Finish { of: Execution, end: End },
    /// Turns the own claim over to a person: the probe does not know.
    Review { of: Execution },
    /// Renews the lease of an execution.
    Renew { of: Execution },
    /// Records the ending of a `record_after` body, over a row that gives way to it.
    Record { owner: u8, over: Option<Row>, completes: bool },
    /// What a person decided about a row as they saw it.
    Decide { seen: Row, deed: Deed, force: bool },
}

/// How an execution ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// With a result of its own.
    Completed,
    /// With what the probe was told.
    Happened,
    Failed,
    Released,
    Withdrawn,
    Held,
}

/// What the writer hears.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    Written { fence: i64 },
    Found(Row),
    Gone,
    Renewed,
    Lost,
}

/// What a call does about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Run(Standing),
    /// Takes the claim over, and asks before it runs.
    Ask,
    Replay,
    Busy,
    Flag,
    Review,
    Failed,
}

/// The result of a completion: whose it is.
pub(crate) fn result_of(owner: u8) -> String {
    format!("{owner:02}")
}

pub(crate) const SAID_BY_A_PERSON: &str = "said";
pub(crate) const FOUND_BY_THE_PROBE: &str = "found";

impl Protocol {
    /// What the runtime decides.
    pub(crate) fn verdict(&self, row: &Row, job: usize) -> Verdict {
        let job = self.jobs[job];
        let decided = match self.mutant {
            Some(Mutant::TrustsTheCallersPolicy) => decided(&row.with(|row| row.on_stale = None), job),
            Some(Mutant::NeverFindsAClaimStale) if row.status == Status::Processing => {
                decided(&row.with(|row| row.now = row.lease_until.unwrap_or(0) - 1), job)
            }
            _ => decided(row, job),
        };
        match decided {
            Decision::Run(Standing::Doubtful) => Verdict::Ask,
            Decision::Run(standing) => Verdict::Run(standing),
            Decision::Flag => Verdict::Flag,
            Decision::Replay => Verdict::Replay,
            Decision::Review => Verdict::Review,
            Decision::Failed => Verdict::Failed,
            Decision::Busy { .. } | Decision::Conflict { .. } | Decision::Mismatch => Verdict::Busy,
        }
    }

    /// One atomic step of the store.
    pub(crate) fn arrive(&self, state: &mut State, sent: &Sent) -> Heard {
        let before = state.row(sent.key).cloned();
        let heard = self.apply(state, sent, before.as_ref());
        let after = state.row(sent.key).cloned();
        if before != after {
            self.witness(state, sent, before.as_ref(), after.as_ref());
        }
        heard
    }

    fn apply(&self, state: &mut State, sent: &Sent, standing: Option<&Row>) -> Heard {
        let key: Arc<str> = KEYS[sent.key].into();
        let (job, now) = (self.jobs[sent.job], state.now);
        let done = match &sent.write {
            Write::Claim { owner } => {
                state.table.insert(now, &Insert { key: key.clone(), row: claim(job, *owner, 1, 0) })
            }
            Write::Take { owner, seen } => {
                let mut take = self.taking(&key, sent.job, *owner, seen);
                if self.mutant == Some(Mutant::TakesOverWithoutVersion) {
                    expect_what_stands(&mut take, standing);
                }
                state.table.replace(now, &take)
            }
            Write::Flag { seen } => {
                let mut flag = restated(&key, seen, Status::NeedsReview);
                if self.mutant == Some(Mutant::FlagsFromAnOldSnapshot) {
                    expect_what_stands(&mut flag, standing);
                }
                state.table.replace(now, &flag)
            }
            Write::Finish { of, end } => self.finish(state, &key, job, *of, *end, standing),
            Write::Review { of } => match standing {
                Some(row) if row.is_of(&result_of(of.owner), of.fence) && is_processing(row) => {
                    state.table.replace(now, &restated(&key, row, Status::NeedsReview))
                }
                _ => unchanged(standing, now),
            },
            Write::Renew { of } => return self.renew(state, key.clone(), job, *of, standing),
            Write::Record { owner, over, completes } => {
                record(state, key.clone(), job, *owner, over.as_ref(), *completes)
            }
            Write::Decide { seen, deed, force } => {
                return deed.done(&mut state.table, now, &key, seen, *force);
            }
        };
        if done.changed && self.mutant == Some(Mutant::FencesByTheClockAlone) {
            fence_by_the_clock(state, sent, &key);
        }
        heard(done.answer)
    }

    fn taking(&self, key: &Arc<str>, job: usize, owner: u8, seen: &Row) -> Replace {
        let (attempt, takeovers) = match self.verdict(seen, job) {
            Verdict::Run(Standing::Absent | Standing::Expired) => (1, 0),
            Verdict::Run(Standing::Released | Standing::Claimed) => (seen.attempt + 1, seen.takeovers),
            _ => (seen.attempt + 1, seen.takeovers + 1),
        };
        Replace {
            key: key.clone(),
            expected: seen.version(),
            row: claim(self.jobs[job], owner, attempt, takeovers),
            raise_fence: true,
            renew_birth: self.verdict(seen, job) == Verdict::Run(Standing::Expired),
            audit: None,
        }
    }

    fn finish(
        &self,
        state: &mut State,
        key: &Arc<str>,
        job: &Job,
        of: Execution,
        end: End,
        standing: Option<&Row>,
    ) -> Done {
        let mut finish = Finish {
            key: key.clone(),
            owner: result_of(of.owner),
            fence: of.fence,
            ending: ending(of, end, job),
        };
        let completes = matches!(end, End::Completed | End::Happened);
        if let (Some(Mutant::CompletesWithoutFence), Some(row), true) = (self.mutant, standing, completes) {
            finish.owner = row.owner.clone().unwrap_or_default();
            finish.fence = row.fence;
        }
        let done = state.table.finish(state.now, &finish);
        if self.mutant == Some(Mutant::HoldsWithTheSameFence) && end == End::Held && done.changed {
            state.table.tamper(key, |row| row.fence = of.fence);
        }
        done
    }

    fn renew(
        &self,
        state: &mut State,
        key: Arc<str>,
        job: &Job,
        of: Execution,
        standing: Option<&Row>,
    ) -> Heard {
        let mut renew = Renew { key, owner: result_of(of.owner), fence: of.fence, lease: job.lease() };
        if let (Some(Mutant::RenewsWithoutFence), Some(row)) = (self.mutant, standing) {
            renew.owner = row.owner.clone().unwrap_or_default();
            renew.fence = row.fence;
        }
        match state.table.renew(state.now, &renew) {
            Renewal::Renewed => Heard::Renewed,
            Renewal::Lost | Renewal::Skipped => Heard::Lost,
        }
    }

    /// Whether the ending of a `record_after` body replaces the row it finds.
    pub(crate) fn gives_way(&self, row: &Row, job: usize, completes: bool) -> bool {
        gives_way(row, row.now, completes, self.jobs[job], None)
            || self.mutant == Some(Mutant::RecordsOverACompletion)
    }
}

fn decided(row: &Row, job: &Job) -> Decision {
    let terms = Terms { job, fingerprint: None, foreign_stale_after: FOREIGN_STALE_AFTER, under: None };
    decide(Some(row), row.now, &terms)
}

pub(crate) fn claim(job: &Job, owner: u8, attempt: i32, takeovers: i32) -> NewRow {
    NewRow {
        status: Status::Processing,
        job: None,
        template: None,
        mode: None,
        on_stale: Some(job.stale_policy().as_str().to_owned()),
        owner: Some(result_of(owner)),
        attempt,
        takeovers,
        lease: Moment::In(job.lease()),
        fingerprint: None,
        result: None,
        error: None,
        worker: None,
        expires: Moment::Never,
        alerted: Moment::Never,
    }
}

/// The row with its history, in another state.
pub(crate) fn restated(key: &Arc<str>, seen: &Row, status: Status) -> Replace {
    Replace {
        key: key.clone(),
        expected: seen.version(),
        row: NewRow { status, ..seen.again() },
        raise_fence: false,
        renew_birth: false,
        audit: None,
    }
}

fn expect_what_stands(replace: &mut Replace, standing: Option<&Row>) {
    if let Some(row) = standing {
        replace.expected = row.version();
    }
}

fn ending(of: Execution, end: End, job: &Job) -> Ending {
    let released = |withdrawn| Ending::Released { error: None, purge_after: Some(RELEASED_FOR), withdrawn };
    match end {
        End::Completed => Ending::Completed { result: Some(result_of(of.owner)), ttl: job.retention() },
        End::Happened => {
            Ending::Completed { result: Some(FOUND_BY_THE_PROBE.to_owned()), ttl: job.retention() }
        }
        End::Failed => Ending::Failed { error: String::new(), ttl: job.retention() },
        End::Released => released(false),
        End::Withdrawn => released(true),
        End::Held => Ending::Held { error: None },
    }
}

fn is_processing(row: &Row) -> bool {
    row.status == Status::Processing
}

fn unchanged(standing: Option<&Row>, now: i64) -> Done {
    let answer = standing.map_or(Answer::Gone, |row| Answer::Found(Box::new((*row.at(now)).clone())));
    Done { answer, changed: false }
}

pub(crate) fn heard(answer: Answer) -> Heard {
    match answer {
        Answer::Written { fence } => Heard::Written { fence },
        Answer::Found(record) => Heard::Found(Row::new(*record)),
        Answer::Gone => Heard::Gone,
    }
}

fn record(
    state: &mut State,
    key: Arc<str>,
    job: &Job,
    owner: u8,
    over: Option<&Row>,
    completes: bool,
) -> Done {
    let status = if completes { Status::Completed } else { Status::Failed };
    let result = completes.then(|| result_of(owner));
    let row = NewRow {
        result,
        expires: Moment::from(job.retention()),
        lease: Moment::Never,
        status,
        on_stale: None,
        ..claim(job, owner, 1, 0)
    };
    let Some(over) = over else { return state.table.insert(state.now, &Insert { key, row }) };
    let expired = !matches!(over.status, Status::Released | Status::Processing);
    let replace = Replace {
        key,
        expected: over.version(),
        row: NewRow { attempt: if expired { 1 } else { over.attempt + 1 }, takeovers: over.takeovers, ..row },
        raise_fence: true,
        renew_birth: expired,
        audit: None,
    };
    state.table.replace(state.now, &replace)
}

fn fence_by_the_clock(state: &mut State, sent: &Sent, key: &Arc<str>) {
    let claims = matches!(sent.write, Write::Claim { .. } | Write::Take { .. });
    if claims {
        let now = state.now;
        state.table.tamper(key, |row| row.fence = now);
    }
}
