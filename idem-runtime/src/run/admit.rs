//! Admitting a call: what it claims, what it finds, and how long it waits.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use super::{Execution, LOOKS, Ticket, job_row, phase::Shelter, settle::Progress, shown};
use crate::{
    claim::{Claim, ClaimTerms, new_owner},
    current::Context,
    error::Error,
    idem::Idem,
    job::{Job, Mode},
    key::Key,
    outcome::Outcome,
    point::{Point, is_dead, reached},
    progress::{look_aside, with_phases},
    record::{self, Decision, Record, Standing, Status, Terms, micros},
    review::turned_over,
    service::{Attempt, Failure, Patience, Service},
    store::{Answer, Audit, Insert, Moment, NewRow, Replace},
};

pub(super) enum Admitted {
    Run(Box<Execution>),
    Completed { key: Key, result: Option<String> },
}

/// A call with its key, ready to meet the row.
pub(super) struct Call {
    pub(super) job: &'static Job,
    pub(super) idem: Idem,
    pub(super) key: Key,
    pub(super) stored: Arc<str>,
    pub(super) fingerprint: Option<String>,
    outer: Option<Arc<Context>>,
    /// What it stands under, if it is a phase.
    pub(super) shelter: Option<Shelter>,
    /// When a call that waits for a busy key stops waiting.
    pub(super) waits_until: Option<Instant>,
    /// The next pause between two looks.
    pause: Duration,
}

impl Call {
    pub(super) fn prepare(ticket: Ticket, place: &'static str) -> Result<Self, Error> {
        if ticket.is_phase {
            return Self::enter_phase(ticket);
        }
        let Ticket { job, idem, key, fingerprint, problem, .. } = ticket;
        let idem = idem.map_or_else(|| Idem::installed(job), Ok)?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let key = key.finish()?.within(idem.namespace());
        if let Some(overlap) = idem.overlap_of(job) {
            return Err(Error::KeyConflict { key, conflict: overlap.to_string() });
        }
        if let Some((first, now)) = job.other_receiver(place) {
            let conflict = format!(
                "`{}` ({}) ran for `{first}` and now runs for `{now}`, and its key does not tell them apart; \
                 put into the key what does, such as a `<self.…>`",
                job.path(),
                job.location(),
            );
            return Err(Error::KeyConflict { key, conflict });
        }
        let outer = Context::current();
        if outer.as_ref().is_some_and(|outer| outer.holds(idem.service(), &key)) {
            return Err(Error::Reentered { key });
        }
        let stored = key.stored();
        Self::new(job, idem, key, stored, fingerprint.finish(), outer, None)
    }

    pub(super) fn new(
        job: &'static Job,
        idem: Idem,
        key: Key,
        stored: Arc<str>,
        fingerprint: Option<String>,
        outer: Option<Arc<Context>>,
        shelter: Option<Shelter>,
    ) -> Result<Self, Error> {
        let waits_until = job.wait_limit().map(|limit| Instant::now() + limit);
        let pause = SHORTEST_WAIT;
        let call = Self { job, idem, key, stored, fingerprint, outer, shelter, waits_until, pause };
        call.check_open()?;
        reached(Point::BeforeClaim);
        Ok(call)
    }

    /// A shutdown lets no call in, but for those that a running body makes: it waits for that body.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        let is_nested = self.outer.as_ref().is_some_and(|outer| outer.service().is(self.service()));
        if self.idem.is_closing() && !is_nested {
            Err(Error::ShuttingDown { key: self.key.clone() })
        } else {
            Ok(())
        }
    }

    pub(super) fn service(&self) -> &Service {
        self.idem.service()
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        Terms {
            job: self.job,
            fingerprint: self.fingerprint.as_deref(),
            foreign_stale_after: self.service().limits().foreign_stale_after,
            under: self.shelter.as_ref().map(Shelter::under),
        }
    }

    fn claim_terms(&self) -> ClaimTerms {
        let released_for = match self.shelter {
            Some(_) => None,
            None => self.job.released_for(self.service().limits().released_for),
        };
        ClaimTerms { lease: self.job.lease(), released_for }
    }

    /// Whether a claim is made before the body runs.
    pub(super) fn claims(&self) -> bool {
        match self.shelter {
            Some(_) => self.job.claims(),
            None => self.job.mode() == Mode::LockFirst,
        }
    }

    fn patience(&self) -> Patience {
        self.service().patience((self.job.mode() == Mode::LockFirst).then(|| self.job.lease()))
    }

    /// `lock_first`: claims the key, or says why not.
    pub(super) async fn claim(mut self) -> Result<Admitted, Error> {
        let give_up = self.patience().until;
        let mut seen =
            if self.shelter.is_none() || self.is_first() { Seen::Absent } else { self.read().await? };
        let mut looks = 0;
        while looks < LOOKS || self.waits_until.is_some_and(|until| Instant::now() < until) {
            looks += 1;
            if !matches!(seen, Seen::Held(_)) {
                self.check_open()?;
            }
            seen = match seen {
                Seen::Absent => self.insert().await?,
                Seen::Held(grant) => match self.enter(grant)? {
                    Some(execution) => return Ok(Admitted::Run(execution)),
                    None if Instant::now() < give_up => Seen::Absent,
                    None => return Err(self.too_slow()),
                },
                Seen::Row(record) => match record::decide(Some(&record), record.now, &self.terms()) {
                    Decision::Run(standing) => self.take(&record, standing).await?,
                    Decision::Flag => self.flag(record).await?,
                    Decision::Busy { retry_after } => self.wait(retry_after).await?,
                    answer => return self.answer(answer, record).await,
                },
            };
        }
        Err(self.in_progress(Some(SHORTEST_WAIT)))
    }

    /// `record_after`, and a phase that makes no claim of its own: nothing stands before the effect.
    pub(super) async fn look_up(mut self) -> Result<Admitted, Error> {
        let mut seen = if self.is_first() { Seen::Absent } else { self.read().await? };
        loop {
            let Seen::Row(record) = seen else { break };
            seen = match record::decide(Some(&record), record.now, &self.terms()) {
                Decision::Run(_) => break,
                Decision::Flag => self.flag(record).await?,
                Decision::Busy { retry_after } => self.wait(retry_after).await?,
                answer => return self.answer(answer, record).await,
            };
        }
        let fence = self.shelter.as_ref().map_or(0, Shelter::fence);
        let entry = Entry { claim: None, owner: None, fence, attempt: 1, born: None };
        Ok(Admitted::Run(self.execution(entry)?))
    }

    /// The answer of a call that does not run.
    pub(super) async fn answer(&self, decision: Decision, record: Box<Record>) -> Result<Admitted, Error> {
        let key = self.key.clone();
        match decision {
            Decision::Replay => Ok(Admitted::Completed { key, result: record.result }),
            Decision::Mismatch => Err(Error::FingerprintMismatch { key }),
            Decision::Conflict { template } => Err(Error::KeyConflict {
                key,
                conflict: format!(
                    "its row was written by `{}` under the template `{template}`, this is `{}` ({}) under `{}`",
                    record.job.as_deref().unwrap_or("another job"),
                    self.job.path(),
                    self.job.location(),
                    self.job.shape(),
                ),
            }),
            Decision::Failed => {
                let message = record.error.unwrap_or_else(|| "its error was not recorded".into());
                Err(Error::PreviouslyFailed { key, message })
            }
            Decision::Review | Decision::Flag => Err(self.needs_review(*record).await),
            Decision::Busy { retry_after } => Err(self.in_progress(retry_after)),
            Decision::Run(_) => Err(self.in_progress(Some(SHORTEST_WAIT))),
        }
    }

    pub(super) async fn needs_review(&self, record: Record) -> Error {
        let retry_after = self.service().limits().review_after;
        let reason = self.idem.reviewer().with_phases(&self.key, record).await.evidence();
        Error::NeedsReview { key: self.key.clone(), reason, retry_after }
    }

    pub(super) fn in_progress(&self, retry_after: Option<Duration>) -> Error {
        // Nothing tells how long a state that is not ours lasts.
        let retry_after = retry_after.unwrap_or_else(|| self.job.lease());
        Error::InProgress { key: self.key.clone(), retry_after }
    }

    /// A store that acknowledges claims only when their leases have passed.
    fn too_slow(&self) -> Error {
        let lease = self.job.lease();
        Error::Store {
            key: Some(self.key.clone()),
            message: format!(
                "the claim was acknowledged after its lease of {lease:?} had passed, and given back"
            ),
            source: None,
        }
    }

    async fn read(&self) -> Result<Seen, Error> {
        let read = self.service().read(Arc::clone(&self.stored), self.patience()).await;
        Ok(read.map_err(|failure| self.failed(failure))?.map_or(Seen::Absent, Seen::Row))
    }

    /// The row of a key as it is committed, whatever a caller's transaction sees.
    pub(super) async fn look_aside(&self, key: &Arc<str>) -> Result<Option<Record>, Error> {
        look_aside(self.service(), key).await.map_err(|failure| self.failed(failure))
    }

    async fn insert(&self) -> Result<Seen, Error> {
        let (claim, terms) = (self.first_claim()?, self.claim_terms());
        match self.service().claim(claim, self.job_claim(), terms, self.patience()).await {
            // Nothing but the claim of its job keeps an absent row from being written.
            Ok(Attempt::Gone) if self.shelter.is_some() => Err(self.superseded()),
            attempt => self.seen(attempt, Standing::Absent, 1, None),
        }
    }

    /// Claims a row as it was seen.
    async fn take(&self, record: &Record, standing: Standing) -> Result<Seen, Error> {
        let record = self.with_phases(record, standing).await?;
        let (claim, terms) = (self.next_claim(&record, standing)?, self.claim_terms());
        let attempt = claim.row.attempt;
        let taken = self.service().take(claim, self.job_claim(), terms, self.patience()).await;
        let born = (standing != Standing::Expired).then_some(record.created_at);
        self.seen(taken, standing, attempt, born)
    }

    /// A job's row, as it is to be claimed, with what an execution that stopped half way left of its phases. A job whose
    /// own text shows none is noted as one that has them: its row is kept for as long as they count.
    async fn with_phases(&self, record: &Record, standing: Standing) -> Result<Record, Error> {
        let mut record = record.clone();
        if self.shelter.is_some() {
            return Ok(record);
        }
        if standing.takes_over() {
            let read = with_phases(self.service(), &self.key, record).await;
            record = read.map_err(|failure| self.failed(failure))?;
        }
        let limit = micros(self.service().limits().released_for);
        let is_kept = || record.expires_at.is_none_or(|end| end.saturating_sub(record.now) > limit);
        if !record.phases.is_empty() || (standing == Standing::Released && is_kept()) {
            self.job.note_phases();
        }
        Ok(record)
    }

    /// The claim of an absent key.
    pub(super) fn first_claim(&self) -> Result<Insert, Error> {
        Ok(Insert { key: Arc::clone(&self.stored), row: self.claim_row(1, 0, None)? })
    }

    /// The claim of a row as it was seen.
    pub(super) fn next_claim(&self, record: &Record, standing: Standing) -> Result<Replace, Error> {
        let (attempt, takeovers) = match standing {
            Standing::Absent | Standing::Expired => (1, 0),
            Standing::Released | Standing::Claimed => (record.attempt.saturating_add(1), record.takeovers),
            Standing::Stale | Standing::Doubtful => {
                (record.attempt.saturating_add(1), record.takeovers.saturating_add(1))
            }
        };
        let fresh = standing == Standing::Expired;
        let error = if fresh { None } else { record.error.clone() };
        Ok(Replace {
            key: Arc::clone(&self.stored),
            expected: record.version(),
            row: self.claim_row(attempt, takeovers, error)?,
            raise_fence: true,
            renew_birth: fresh,
            audit: standing.takes_over().then(|| self.takeover(record)),
        })
    }

    /// What the audit table keeps of an execution that stopped half way, once another one takes its place.
    fn takeover(&self, record: &Record) -> Audit {
        Audit {
            actor: self.idem.worker().to_owned(),
            from_status: record.status.to_string(),
            to_status: Status::Processing.to_string(),
            note: record.evidence(),
            old_result: None,
        }
    }

    fn seen(
        &self,
        attempt: Result<Attempt, Failure>,
        standing: Standing,
        number: i32,
        born: Option<i64>,
    ) -> Result<Seen, Error> {
        match attempt {
            Ok(Attempt::Held(claim)) => Ok(Seen::Held(Grant { claim, standing, number, born })),
            Ok(Attempt::Found(record)) => Ok(Seen::Row(record)),
            Ok(Attempt::Gone) => Ok(Seen::Absent),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    fn claim_row(&self, attempt: i32, takeovers: i32, error: Option<String>) -> Result<NewRow, Error> {
        Ok(NewRow {
            on_stale: Some(self.job.stale_policy().as_str().to_owned()),
            attempt,
            takeovers,
            lease: Moment::In(self.job.lease()),
            error,
            owner: Some(match &self.shelter {
                Some(shelter) => shelter.owner().to_owned(),
                None => new_owner()?,
            }),
            ..job_row(self.job, &self.idem, Status::Processing, self.fingerprint.clone())
        })
    }

    /// Turns a stale claim into one that a person has to look at, and tells them.
    async fn flag(&self, record: Box<Record>) -> Result<Seen, Error> {
        match self.flagging(&record).await.map_err(|failure| self.failed(failure))? {
            Answer::Written { .. } => Err(self.needs_review(turned_over(*record)).await),
            Answer::Found(record) => Ok(Seen::Row(record)),
            Answer::Gone => Ok(Seen::Absent),
        }
    }

    /// The write of it, which is on its way from the first poll on.
    pub(super) async fn flagging(&self, record: &Record) -> Result<Answer, Failure> {
        self.idem.reviewer().flag(&self.key, record, self.patience()).await
    }

    /// Waits for a busy key, as long as the job wants to, and looks again.
    async fn wait(&mut self, retry_after: Option<Duration>) -> Result<Seen, Error> {
        let Some(until) = self.waits_until else { return Err(self.in_progress(retry_after)) };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.in_progress(retry_after));
            }
            let pause = retry_after.unwrap_or(self.pause).min(self.pause).max(SHORTEST_WAIT).min(left);
            self.pause = (self.pause * 2).min(LONGEST_WAIT);
            self.service().sleep(pause).await.map_err(|failure| self.failed(failure))?;
            self.check_open()?;
            // Only a look that finds the key still busy waits on: it writes nothing.
            let seen = self.read().await?;
            let Seen::Row(record) = &seen else { return Ok(seen) };
            if !matches!(record::decide(Some(record), record.now, &self.terms()), Decision::Busy { .. }) {
                return Ok(seen);
            }
        }
    }

    /// Enters a claim, unless its lease has passed already: then it is given back.
    fn enter(&self, grant: Grant) -> Result<Option<Box<Execution>>, Error> {
        let Grant { claim, standing, number, born } = grant;
        if claim.lease().is_lost() {
            return Ok(None);
        }
        let (owner, fence) = (Some(claim.owner().to_owned()), claim.fence());
        let entry = Entry { claim: Some(claim), owner, fence, attempt: number, born };
        let mut execution = self.execution(entry)?;
        if standing.takes_over() {
            tracing::warn!(
                job = self.job.name(),
                key = shown(&self.key),
                attempt = number,
                "took over a stale claim"
            );
            execution.on_success = Outcome::TookOver;
        }
        if standing == Standing::Doubtful {
            execution.progress = Progress::Asks;
        }
        Ok(Some(execution))
    }

    pub(super) fn execution(&self, entry: Entry) -> Result<Box<Execution>, Error> {
        let Entry { claim, owner, fence, attempt, born } = entry;
        reached(Point::Claimed);
        if is_dead() {
            return Err(Error::ServiceGone { key: Some(self.key.clone()) });
        }
        let live = self.service().live();
        let membership =
            live.join(&self.stored, claim.as_ref(), self.job.heartbeat(), self.shelter.is_some());
        // From here on a shutdown waits for this execution. One that came before is seen now; dropping the claim gives
        // it back.
        self.check_open()?;
        let context = Arc::new(Context {
            idem: self.idem.clone(),
            job: self.job,
            key: self.key.clone(),
            stored: Arc::clone(&self.stored),
            owner,
            fence,
            attempt: u32::try_from(attempt).unwrap_or(1),
            lease: claim.as_ref().map(|claim| Arc::clone(claim.lease())),
            mark: AtomicBool::new(false),
            outer: self.outer.clone(),
            part: self.whole(born),
        });
        Ok(Box::new(Execution {
            job: self.job,
            idem: self.idem.clone(),
            stored: Arc::clone(&self.stored),
            fingerprint: self.fingerprint.clone(),
            context,
            claim,
            shelter: self.shelter.clone(),
            _membership: membership,
            on_success: Outcome::Executed,
            progress: Progress::Runs,
            slot: None,
        }))
    }
}

/// What a call found out about its key.
enum Seen {
    Absent,
    Row(Box<Record>),
    Held(Grant),
}

/// An execution that begins.
pub(super) struct Entry {
    pub(super) claim: Option<Claim>,
    /// The owner of its claim, also of one in a caller's transaction, which nobody else sees.
    pub(super) owner: Option<String>,
    pub(super) fence: i64,
    /// The how manyeth execution of the key it is.
    pub(super) attempt: i32,
    /// When the row was born, if not just now.
    pub(super) born: Option<i64>,
}

struct Grant {
    claim: Claim,
    standing: Standing,
    /// The how manyeth execution of the key it is.
    number: i32,
    /// When the row was born, if not just now.
    born: Option<i64>,
}

/// The pauses between two looks at a busy key.
pub(super) const SHORTEST_WAIT: Duration = Duration::from_millis(10);
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(500);
