//! The one orchestration per mode: admit a call, attend its body, settle what it left.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, atomic::AtomicBool},
    task::Poll,
    time::{Duration, Instant},
};

use crate::{
    alert::Alert,
    block_on::block_on,
    claim::{Claim, Lease, new_owner},
    current::Context,
    error::Error,
    fingerprint::Fingerprinter,
    heartbeat::Membership,
    idem::Idem,
    job::{ErrorRule, Job, Mode, OnError, OnStale},
    key::{Key, Rendering},
    outcome::{Outcome, Slot},
    record::{self, Decision, Record, Standing, Status, Terms},
    result::Encoded,
    service::{Attempt, Failure, Patience, Service},
    store::{self, Answer, Finish, Insert, Moment, NewRow, Replace},
};

/// How often a claim that keeps meeting another row looks again before it says that the key is busy.
const LOOKS: usize = 16;

/// What a call brings along.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) job: &'static Job,
    pub(crate) idem: Option<Idem>,
    pub(crate) key: Rendering,
    pub(crate) fingerprint: Fingerprinter,
    pub(crate) problem: Option<Error>,
}

/// What becomes of a call.
pub(crate) enum Admission {
    /// The body runs.
    Run(Box<Execution>),
    /// The key is completed.
    Completed(Completed),
    /// The call is answered with an error.
    Refused(Refusal),
}

/// A call whose key is completed.
pub(crate) struct Completed {
    job: &'static Job,
    key: Key,
    result: Option<String>,
    slot: Option<Arc<Slot>>,
}

impl Completed {
    pub(crate) fn result(&self) -> Option<&str> {
        self.result.as_deref()
    }

    pub(crate) fn replayed(self) {
        tracing::info!(job = self.job.name(), key = shown(&self.key), "already done, skipped");
        report(self.slot.as_ref(), Outcome::Replayed);
    }

    pub(crate) fn without_result(self) -> Error {
        self.refuse(|key| Error::AlreadyCompleted { key })
    }

    pub(crate) fn unreadable(self, wanted: &'static str, source: serde_json::Error) -> Error {
        self.refuse(|key| Error::ReplayUnreadable { key, wanted, source })
    }

    fn refuse(self, error: impl FnOnce(Key) -> Error) -> Error {
        Refusal { job: self.job, error: error(self.key), slot: self.slot }.report()
    }
}

/// A call that is answered with an error.
pub(crate) struct Refusal {
    job: &'static Job,
    error: Error,
    slot: Option<Arc<Slot>>,
}

impl Refusal {
    /// The error, said once.
    pub(crate) fn report(self) -> Error {
        let Self { job, error, slot } = self;
        let job = job.name();
        let key = error.key().and_then(shown);
        match &error {
            Error::InProgress { .. } => tracing::debug!(job, key, "busy: another execution holds the key"),
            Error::AlreadyCompleted { .. } => {
                tracing::info!(job, key, "already done, skipped; no result to replay");
            }
            Error::NeedsReview { .. } => tracing::error!(job, key, "needs review: not run"),
            Error::ShuttingDown { .. } => tracing::debug!(job, key, "shutting down: not run"),
            Error::ClaimLost { .. } => tracing::warn!(job, key, "claim lost: the result was not recorded"),
            Error::CompletionUnknown { message, .. } => {
                tracing::error!(
                    job,
                    key,
                    message,
                    "completion unknown: the job ran, its completion may be recorded"
                );
            }
            _ => tracing::error!(job, key, kind = ?error.kind(), "refused"),
        }
        report(slot.as_ref(), Outcome::Refused(error.kind()));
        error
    }
}

fn report(slot: Option<&Arc<Slot>>, outcome: Outcome) {
    if let Some(slot) = slot {
        slot.set(outcome);
    }
}

/// A key's value, for an event: only where someone listens at debug level.
fn shown(key: &Key) -> Option<&str> {
    tracing::enabled!(tracing::Level::DEBUG).then(|| key.as_str())
}

/// Decides whether a call runs.
pub(crate) async fn admit(ticket: Ticket, place: &'static str) -> Admission {
    let job = ticket.job;
    let slot = Slot::take();
    let admitted = match Call::prepare(ticket, place) {
        Ok(call) => match job.mode() {
            Mode::LockFirst => call.claim().await,
            Mode::RecordAfter => call.look_up().await,
        },
        Err(error) => Err(error),
    };
    match admitted {
        Ok(Admitted::Run(mut execution)) => {
            execution.slot = slot;
            Admission::Run(execution)
        }
        Ok(Admitted::Completed { key, result }) => Admission::Completed(Completed { job, key, result, slot }),
        Err(error) => Admission::Refused(Refusal { job, error, slot }),
    }
}

enum Admitted {
    Run(Box<Execution>),
    Completed { key: Key, result: Option<String> },
}

/// A call with its key, ready to meet the row.
struct Call {
    job: &'static Job,
    idem: Idem,
    key: Key,
    stored: Arc<str>,
    fingerprint: Option<String>,
    outer: Option<Arc<Context>>,
    /// When a call that waits for a busy key stops waiting.
    waits_until: Option<Instant>,
    /// The next pause between two looks.
    pause: Duration,
}

impl Call {
    fn prepare(ticket: Ticket, place: &'static str) -> Result<Self, Error> {
        let Ticket { job, idem, key, fingerprint, problem } = ticket;
        let idem = idem.map_or_else(Idem::installed, Ok)?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let key = key.finish()?.within(idem.namespace());
        if let Some(overlap) = idem.overlap_of(job) {
            return Err(Error::KeyConflict { key, conflict: overlap.to_string() });
        }
        if let Some(first) = job.other_receiver(place) {
            let conflict = format!(
                "`{}` ({}) ran for `{first}` and now runs elsewhere (`{place}`), and its key does not tell them apart; \
                 put a `<self.…>` into the key",
                job.path(),
                job.location(),
            );
            return Err(Error::KeyConflict { key, conflict });
        }
        let outer = Context::current();
        if outer.as_ref().is_some_and(|outer| outer.holds(idem.service(), &key)) {
            return Err(Error::Reentered { key });
        }
        if idem.is_closing() {
            return Err(Error::ShuttingDown { key });
        }
        let stored = key.stored();
        let waits_until = job.wait_limit().map(|limit| Instant::now() + limit);
        Ok(Self {
            job,
            idem,
            key,
            stored,
            fingerprint: fingerprint.finish(),
            outer,
            waits_until,
            pause: SHORTEST_WAIT,
        })
    }

    fn service(&self) -> &Service {
        self.idem.service()
    }

    fn terms(&self) -> Terms<'_> {
        Terms {
            job: self.job,
            fingerprint: self.fingerprint.as_deref(),
            foreign_stale_after: self.service().limits().foreign_stale_after,
        }
    }

    fn patience(&self) -> Patience {
        self.service().patience((self.job.mode() == Mode::LockFirst).then(|| self.job.lease()))
    }

    fn failed(&self, failure: Failure) -> Error {
        failure.into_error(Some(&self.key))
    }

    /// `lock_first`: claims the key, or says why not.
    async fn claim(mut self) -> Result<Admitted, Error> {
        let give_up = self.patience().until;
        let mut seen = Seen::Absent;
        for _ in 0..LOOKS {
            seen = match seen {
                Seen::Absent => self.insert().await?,
                Seen::Held(grant) => match self.enter(grant) {
                    Some(execution) => return Ok(Admitted::Run(execution)),
                    None if Instant::now() < give_up => Seen::Absent,
                    None => return Err(self.too_slow()),
                },
                Seen::Row(record) => match record::decide(Some(&record), record.now, &self.terms()) {
                    Decision::Run(standing) => self.take(&record, standing).await?,
                    Decision::Flag => self.flag(record).await?,
                    Decision::Busy { retry_after } => self.wait(retry_after).await?,
                    answer => return self.answer(answer, record),
                },
            };
        }
        Err(self.in_progress(None))
    }

    /// `record_after`: nothing stands before the effect.
    async fn look_up(mut self) -> Result<Admitted, Error> {
        let mut seen = self.read().await?;
        loop {
            let Seen::Row(record) = seen else { return Ok(Admitted::Run(self.execution(None, 1))) };
            seen = match record::decide(Some(&record), record.now, &self.terms()) {
                Decision::Run(_) => return Ok(Admitted::Run(self.execution(None, 1))),
                Decision::Busy { retry_after } => self.wait(retry_after).await?,
                answer => return self.answer(answer, record),
            };
        }
    }

    /// The answer of a call that does not run.
    fn answer(&self, decision: Decision, record: Box<Record>) -> Result<Admitted, Error> {
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
            Decision::Review | Decision::Flag => Err(self.needs_review(&record)),
            Decision::Busy { retry_after } => Err(self.in_progress(retry_after)),
            Decision::Run(_) => Err(self.in_progress(None)),
        }
    }

    fn needs_review(&self, record: &Record) -> Error {
        let retry_after = self.service().limits().review_after;
        Error::NeedsReview { key: self.key.clone(), reason: record.evidence(), retry_after }
    }

    fn in_progress(&self, retry_after: Option<Duration>) -> Error {
        let retry_after = retry_after.unwrap_or(SHORTEST_WAIT);
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

    async fn insert(&self) -> Result<Seen, Error> {
        let insert = Insert { key: Arc::clone(&self.stored), row: self.claim_row(1, 0, None)? };
        let attempt = self.service().claim(insert, self.job.lease(), self.patience()).await;
        self.seen(attempt, Standing::Absent, 1)
    }

    /// Claims a row as it was seen.
    async fn take(&self, record: &Record, standing: Standing) -> Result<Seen, Error> {
        let (attempt, takeovers) = match standing {
            Standing::Absent | Standing::Expired => (1, 0),
            Standing::Released | Standing::Claimed => (record.attempt.saturating_add(1), record.takeovers),
            Standing::Stale => (record.attempt.saturating_add(1), record.takeovers.saturating_add(1)),
        };
        let fresh = standing == Standing::Expired;
        let error = if fresh { None } else { record.error.clone() };
        let replace = Replace {
            key: Arc::clone(&self.stored),
            expected: record.version(),
            row: self.claim_row(attempt, takeovers, error)?,
            raise_fence: true,
            renew_birth: fresh,
            audit: None,
        };
        let taken = self.service().take(replace, self.job.lease(), self.patience()).await;
        self.seen(taken, standing, attempt)
    }

    fn seen(
        &self,
        attempt: Result<Attempt, Failure>,
        standing: Standing,
        number: i32,
    ) -> Result<Seen, Error> {
        match attempt {
            Ok(Attempt::Held(claim)) => Ok(Seen::Held(Grant { claim, standing, number })),
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
            ..job_row(self.job, &self.idem, Status::Processing, self.fingerprint.clone())?
        })
    }

    /// Turns a stale claim into one that a person has to look at, and tells them.
    async fn flag(&self, record: Box<Record>) -> Result<Seen, Error> {
        let hook = self.idem.hook().clone();
        // Where there is no hook, the event of the refusal is the alert.
        let alerted =
            if hook.is_set() { Moment::from(record.alerted_at) } else { Moment::In(Duration::ZERO) };
        let replace = flagged(&record, alerted);
        let service = self.service().clone();
        let seen = record.clone();
        let patience = self.patience();
        let flagging = self.service().complete(async move {
            let answer = service.replace(replace, patience).await?;
            if let Answer::Written { .. } = answer {
                let alert = Alert {
                    key: seen.key.clone(),
                    job: seen.job.clone(),
                    reason: seen.evidence(),
                    record: (*seen).clone(),
                };
                hook.call(vec![alert], move || {
                    let mut told = flagged(&seen, Moment::In(Duration::ZERO));
                    told.expected.status = Status::NeedsReview;
                    let patience = service.patience(None);
                    if let Err(failure) = block_on(service.replace(told, patience)) {
                        tracing::warn!(?failure, "the alert was raised, and that could not be recorded");
                    }
                });
            }
            Ok(answer)
        });
        match flagging.await.and_then(|answer| answer).map_err(|failure| self.failed(failure))? {
            Answer::Written { .. } => Err(self.needs_review(&record)),
            Answer::Found(record) => Ok(Seen::Row(record)),
            Answer::Gone => Ok(Seen::Absent),
        }
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
            // Only a look that finds the key still busy waits on: it writes nothing.
            let seen = self.read().await?;
            let Seen::Row(record) = &seen else { return Ok(seen) };
            if !matches!(record::decide(Some(record), record.now, &self.terms()), Decision::Busy { .. }) {
                return Ok(seen);
            }
        }
    }

    /// Enters a claim, unless its lease has passed already: then it is given back.
    fn enter(&self, grant: Grant) -> Option<Box<Execution>> {
        let Grant { claim, standing, number } = grant;
        if claim.lease().is_lost() {
            return None;
        }
        if standing == Standing::Stale {
            tracing::warn!(
                job = self.job.name(),
                key = shown(&self.key),
                attempt = number,
                "took over a stale claim"
            );
        }
        let mut execution = self.execution(Some(claim), u32::try_from(number).unwrap_or(1));
        execution.took_over = standing == Standing::Stale;
        Some(execution)
    }

    fn execution(&self, claim: Option<Claim>, attempt: u32) -> Box<Execution> {
        let live = self.service().live();
        let membership = live.join(&self.stored, claim.as_ref(), self.job.heartbeat());
        let context = Arc::new(Context {
            service: self.service().clone(),
            key: self.key.clone(),
            fence: claim.as_ref().map_or(0, Claim::fence),
            attempt,
            lease: claim.as_ref().map(|claim| Arc::clone(claim.lease())),
            mark: AtomicBool::new(false),
            outer: self.outer.clone(),
        });
        Box::new(Execution {
            job: self.job,
            idem: self.idem.clone(),
            stored: Arc::clone(&self.stored),
            fingerprint: self.fingerprint.clone(),
            context,
            claim,
            _membership: membership,
            took_over: false,
            slot: None,
        })
    }
}

/// What a call found out about its key.
enum Seen {
    Absent,
    Row(Box<Record>),
    Held(Grant),
}

struct Grant {
    claim: Claim,
    standing: Standing,
    /// The how manyeth execution of the key it is.
    number: i32,
}

/// The pauses between two looks at a busy key.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A row of a job, by an execution of its own.
fn job_row(job: &Job, idem: &Idem, status: Status, fingerprint: Option<String>) -> Result<NewRow, Error> {
    Ok(NewRow {
        status,
        job: Some(job.name().to_owned()),
        template: Some(job.shape().to_owned()),
        mode: Some(job.mode().as_str().to_owned()),
        on_stale: None,
        owner: Some(new_owner()?),
        attempt: 1,
        takeovers: 0,
        lease: Moment::Never,
        fingerprint,
        result: None,
        error: None,
        worker: Some(idem.worker().to_owned()),
        expires: Moment::Never,
        alerted: Moment::Never,
    })
}

/// The row of a stale claim, as one that needs review.
fn flagged(record: &Record, alerted: Moment) -> Replace {
    Replace {
        key: record.key.as_str().into(),
        expected: record.version(),
        row: NewRow { alerted, ..NewRow::with_history(record, Status::NeedsReview) },
        raise_fence: false,
        renew_birth: false,
        audit: None,
    }
}

/// How a body ended.
pub(crate) enum Ending {
    Completed(Encoded),
    Failed { verdict: Option<OnError>, message: Option<String> },
}

/// An admitted call: its body may run. Dropping it before it is settled (a panic, a dropped future) ends the claim as
/// the job's policy wants it.
#[must_use]
pub(crate) struct Execution {
    job: &'static Job,
    idem: Idem,
    stored: Arc<str>,
    fingerprint: Option<String>,
    context: Arc<Context>,
    claim: Option<Claim>,
    /// It counts as running, and its lease is renewed, for as long as this stays.
    _membership: Membership,
    took_over: bool,
    slot: Option<Arc<Slot>>,
}

impl Execution {
    /// Runs the body inside of this execution. Where others may take the claim over, a body whose lease is lost is
    /// dropped: `None`.
    pub(crate) async fn attend<R>(&self, body: Pin<Box<impl Future<Output = R>>>) -> Option<R> {
        let mut body = pin!(self.context.scope(body));
        let guarded = self.job.stale_policy() != OnStale::Alert;
        let lease = self.context.lease.as_deref().filter(|_| guarded);
        let mut lost = pin!(async {
            match lease {
                Some(lease) => lease.lost().await,
                None => std::future::pending().await,
            }
        });
        poll_fn(|cx| {
            if lost.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            body.as_mut().poll(cx).map(Some)
        })
        .await
    }

    pub(crate) fn attend_sync<R>(&self, body: impl FnOnce() -> R) -> R {
        self.context.sync_scope(body)
    }

    /// The answer of a body that was dropped because its lease was lost.
    pub(crate) fn lost(mut self) -> Error {
        let error = Error::ClaimLost { key: self.context.key.clone() };
        let slot = self.slot.take();
        Refusal { job: self.job, error, slot }.report()
    }

    /// Records how the body ended. The write is on its way at the first poll, whatever becomes of this future.
    ///
    /// A body's own `Err` is handed on whatever becomes of its record; only a completion that is not recorded is an
    /// error here.
    pub(crate) async fn settle(mut self: Box<Self>, ending: Ending) -> Result<(), Error> {
        let slot = self.slot.take();
        let job = self.job;
        let outcome = match ending {
            Ending::Completed(result) => {
                let result = self.storable(result);
                match self.complete(result).await {
                    Ok(()) if self.took_over => Outcome::TookOver,
                    Ok(()) => Outcome::Executed,
                    Err(error) => return Err(Refusal { job, error, slot }.report()),
                }
            }
            Ending::Failed { verdict, message } => {
                let verdict = verdict.unwrap_or_else(|| self.verdict());
                self.fail(verdict, brief(message)).await;
                Outcome::BodyFailed
            }
        };
        tracing::debug!(job = job.name(), key = shown(&self.context.key), ?outcome, "done");
        report(slot.as_ref(), outcome);
        Ok(())
    }

    fn verdict(&self) -> OnError {
        match self.job.error_rule() {
            ErrorRule::Record => OnError::Record,
            ErrorRule::Hold => OnError::Hold,
            ErrorRule::ByMark if self.context.is_marked() => OnError::Hold,
            ErrorRule::ByMark | ErrorRule::Release => OnError::Release,
        }
    }

    /// The result as the row can hold it; says once where it cannot.
    fn storable(&self, result: Encoded) -> Option<String> {
        result.within(self.idem.service().limits().result_limit).unwrap_or_else(|reason| {
            tracing::warn!(
                job = self.job.name(),
                key = shown(&self.context.key),
                reason,
                "completed without a stored result: repeats get `AlreadyCompleted`"
            );
            None
        })
    }

    async fn complete(&mut self, result: Option<String>) -> Result<(), Error> {
        let key = self.context.key.clone();
        let ttl = self.job.retention();
        let recorded = match self.claim.take() {
            Some(claim) => {
                let (finishing, _) = end(claim, store::Ending::Completed { result: result.clone(), ttl });
                match finishing.await {
                    Ok(Answer::Written { .. }) => return Ok(()),
                    Ok(Answer::Found(_) | Answer::Gone) => return Err(Error::ClaimLost { key }),
                    Err(failure) => Err(failure),
                }
            }
            None => self.record(Status::Completed, result.clone(), None).await,
        };
        recorded.map_err(|failure| {
            let message = failure.into_error(None).to_string();
            Error::CompletionUnknown { key, result, message }
        })
    }

    async fn fail(&mut self, verdict: OnError, error: String) {
        let ttl = self.job.retention();
        let recorded = match (self.claim.take(), verdict) {
            (Some(claim), verdict) => {
                let purge_after = self.idem.service().limits().released_for;
                let ending = match verdict {
                    OnError::Hold => store::Ending::Held { error: Some(error) },
                    OnError::Release => {
                        store::Ending::Released { error: Some(error), purge_after, withdrawn: false }
                    }
                    OnError::Record => store::Ending::Failed { error, ttl },
                };
                end(claim, ending).0.await.map(|answer| matches!(answer, Answer::Written { .. }))
            }
            (None, OnError::Record) => self.record(Status::Failed, None, Some(error)).await.map(|()| true),
            (None, OnError::Hold | OnError::Release) => return,
        };
        let (job, key) = (self.job.name(), shown(&self.context.key));
        match recorded {
            Ok(true) => {}
            Ok(false) => tracing::warn!(job, key, "claim lost: the job's error was not recorded"),
            Err(failure) => tracing::warn!(job, key, ?failure, "the job's error could not be recorded"),
        }
    }

    /// `record_after`: writes the ending where nothing better stands. The first completion stays.
    async fn record(
        &self,
        status: Status,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<(), Failure> {
        let row = job_row(self.job, &self.idem, status, self.fingerprint.clone());
        let Ok(row) = row else { return Err(Failure::Gone) };
        let row = NewRow { result, error, expires: Moment::from(self.job.retention()), ..row };
        let service = self.idem.service().clone();
        let (job, key) = (self.job, Arc::clone(&self.stored));
        let recording = self.idem.service().complete(async move { record(&service, job, key, row).await });
        recording.await?
    }

    /// How a body that neither returned nor died leaves its claim.
    fn interrupted(&self) -> store::Ending {
        let error = Some("the body panicked or was dropped before it returned".to_owned());
        if self.job.error_rule() == ErrorRule::ByMark && !self.context.is_marked() {
            let purge_after = self.idem.service().limits().released_for;
            return store::Ending::Released { error, purge_after, withdrawn: false };
        }
        store::Ending::Held { error }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            let ending = self.interrupted();
            let (service, finish, lease) = claim.end(ending);
            service.finish_detached(finish, lease.ends());
        }
    }
}

/// Sends the end of a claim; it is on its way when this returns.
fn end(claim: Claim, ending: store::Ending) -> (impl Future<Output = Result<Answer, Failure>>, Arc<Lease>) {
    let (service, finish, lease): (Service, Finish, Arc<Lease>) = claim.end(ending);
    let until = lease.ends().max(Instant::now() + service.limits().store_timeout);
    let patience = Patience::new(until, Some(lease.term()));
    (service.finish(finish, patience), lease)
}

/// Writes the ending of a `record_after` body.
async fn record(service: &Service, job: &Job, key: Arc<str>, row: NewRow) -> Result<(), Failure> {
    let patience = Patience::new(Instant::now() + service.limits().record_for, None).insisting();
    let completes = row.status == Status::Completed;
    let mut answer = service.insert(Insert { key: Arc::clone(&key), row: row.clone() }, patience).await?;
    for _ in 0..LOOKS {
        answer = match answer {
            Answer::Written { .. } => return Ok(()),
            Answer::Gone => {
                service.insert(Insert { key: Arc::clone(&key), row: row.clone() }, patience).await?
            }
            Answer::Found(record) if record::gives_way(&record, record.now, completes, job) => {
                let expired = record.status != Status::Released && record.status != Status::Processing;
                let attempt = if expired { 1 } else { record.attempt.saturating_add(1) };
                let replace = Replace {
                    key: Arc::clone(&key),
                    expected: record.version(),
                    row: NewRow { attempt, takeovers: record.takeovers, ..row.clone() },
                    raise_fence: true,
                    renew_birth: expired,
                    audit: None,
                };
                service.replace(replace, patience).await?
            }
            Answer::Found(record) => {
                tracing::debug!(job = job.name(), status = %record.status, "another ending was recorded first; it stays");
                return Ok(());
            }
        };
    }
    Err(Failure::Full)
}

/// An error's text, as a row can hold it.
fn brief(message: Option<String>) -> String {
    const LONGEST: usize = 4 * 1024;
    let mut text = message.unwrap_or_else(|| "the job returned an error that has no text".into());
    text.truncate(text.floor_char_boundary(LONGEST));
    text.replace('\0', "\u{fffd}")
}
