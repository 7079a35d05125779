//! An admitted call: its body runs, and what it left is settled.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
    time::Instant,
};

use super::{LOOKS, Refusal, job_row, phase::Shelter, report, shown};
use crate::{
    claim::{Claim, Lease, new_owner},
    current::Context,
    error::Error,
    heartbeat::Membership,
    idem::Idem,
    job::{ErrorRule, Job, OnError, OnStale},
    outcome::{Outcome, Slot},
    point::{Point, reached},
    record::{self, Record, Status},
    result::Encoded,
    service::{Failure, Patience, Service},
    store::{self, Answer, ErrorClass, Finish, Insert, Moment, NewRow, Replace, StoreError},
};

/// How a body ended.
pub(crate) enum Ending {
    Completed(Encoded),
    Failed { verdict: Option<OnError>, message: Option<String> },
}

/// An admitted call: its body may run. Dropping it before it is settled (a panic, a dropped future) ends the claim as
/// the job's policy wants it.
#[must_use]
pub(crate) struct Execution {
    pub(super) job: &'static Job,
    pub(super) idem: Idem,
    pub(super) stored: Arc<str>,
    pub(super) fingerprint: Option<String>,
    pub(super) context: Arc<Context>,
    pub(super) claim: Option<Claim>,
    /// What it stands under, if it is a phase.
    pub(super) shelter: Option<Shelter>,
    /// It counts as running, and its lease is renewed, for as long as this stays.
    pub(super) _membership: Membership,
    /// How the call ends once its completion is recorded.
    pub(super) on_success: Outcome,
    pub(super) progress: Progress,
    pub(super) slot: Option<Arc<Slot>>,
}

/// How far an execution has come: what it leaves when it is dropped depends on that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its probe is to be asked before anything runs, or waits for something: nobody knows more than before.
    Asks,
    /// Its probe runs, or has answered and nothing was made of the answer. What leaves here is a panic.
    Asking,
    /// The body may run.
    Runs,
    /// The body came to its end: whatever goes wrong from here on, its effect may have happened.
    Returned,
}

/// Resolves when the lease is lost.
type Lost = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An execution while its probe or its body runs.
#[must_use]
pub(crate) struct Attendance {
    execution: Box<Execution>,
    /// Where others may take the claim over, a body whose lease is lost does not go on.
    lost: Option<Lost>,
}

impl Attendance {
    /// Lets the probe or the body go on, by a step that says whether it is over.
    pub(crate) fn poll(
        &mut self,
        cx: &mut task::Context<'_>,
        step: &mut dyn FnMut(&mut task::Context<'_>) -> bool,
    ) -> Poll<()> {
        if self.lost.as_mut().is_some_and(|lost| lost.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(());
        }
        self.execution.enter();
        let is_over = self.execution.context.sync_scope(|| step(cx));
        self.execution.leave(is_over);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The execution, after what is left of its body was dropped inside of it.
    pub(crate) fn end(self, drop_body: Option<&mut dyn FnMut()>) -> Box<Execution> {
        drop(drop_body.map(|drop_body| self.execution.context.scope(OnDrop(drop_body))));
        self.execution
    }
}

/// A future that is dropped in place of the body, whose type it does not know: tokio drops what it scopes inside of the
/// scope, and outside where the thread has none any more.
struct OnDrop<'a>(&'a mut dyn FnMut());

impl Future for OnDrop<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Execution {
    /// Whether the probe is asked before anything runs.
    pub(super) fn asks(&self) -> bool {
        self.progress == Progress::Asks
    }

    /// The probe or the body goes on.
    fn enter(&mut self) {
        if self.progress == Progress::Asks {
            self.progress = Progress::Asking;
        }
    }

    /// It waits, or is over.
    fn leave(&mut self, is_over: bool) {
        match (self.progress, is_over) {
            (Progress::Asking, true) => reached(Point::ProbeAnswered),
            (Progress::Asking, false) => self.progress = Progress::Asks,
            (_, true) => self.progress = Progress::Returned,
            (_, false) => reached(Point::InBody),
        }
    }

    /// Lets the probe or the body run inside of this execution.
    pub(crate) fn attend(self: Box<Self>) -> Attendance {
        let guarded = self.job.stale_policy() != OnStale::Alert;
        let lease = self.context.lease.clone().filter(|_| guarded);
        let lost = lease.map(|lease| -> Lost { Box::pin(async move { lease.lost().await }) });
        Attendance { execution: self, lost }
    }

    /// Runs the body of an execution that has no lease to lose.
    pub(crate) async fn attend_inside<R>(&mut self, body: Pin<Box<impl Future<Output = R>>>) -> R {
        let returned = self.context.scope(body).await;
        self.leave(true);
        returned
    }

    pub(crate) fn attend_sync<R>(&mut self, run: impl FnOnce() -> R) -> R {
        self.enter();
        let returned = self.context.sync_scope(run);
        self.leave(true);
        returned
    }

    /// The answer of a probe or a body that was dropped because its lease was lost.
    pub(crate) fn dropped(mut self) -> Error {
        let error = Error::ClaimLost { key: self.context.key.clone() };
        let slot = self.slot.take();
        Refusal { job: self.job, error, slot }.report()
    }

    /// Records how the body ended. The write is on its way at the first poll, whatever becomes of this future.
    ///
    /// A body's own `Err` is handed on whatever becomes of its record; only a completion that is not recorded is an
    /// error here: the answer of the call.
    pub(crate) async fn settle(mut self: Box<Self>, ending: Ending) -> Option<Error> {
        if self.progress == Progress::Returned {
            reached(Point::BodyReturned);
        }
        let slot = self.slot.take();
        let job = self.job;
        let outcome = match ending {
            Ending::Completed(result) => {
                let result = self.storable(result);
                match self.complete(result).await {
                    Ok(()) => self.on_success,
                    Err(error) => return Some(Refusal { job, error, slot }.report()),
                }
            }
            Ending::Failed { verdict, message } => {
                let verdict = verdict.unwrap_or_else(|| self.verdict());
                self.fail(verdict, brief(message)).await;
                Outcome::BodyFailed
            }
        };
        reached(Point::Ended);
        tracing::debug!(job = job.name(), key = shown(&self.context.key), ?outcome, "done");
        report(slot.as_ref(), outcome);
        None
    }

    pub(super) fn verdict(&self) -> OnError {
        match self.job.error_rule() {
            ErrorRule::Record => OnError::Record,
            ErrorRule::Hold => OnError::Hold,
            ErrorRule::ByMark if self.context.is_marked() => OnError::Hold,
            ErrorRule::ByMark | ErrorRule::Release => OnError::Release,
        }
    }

    /// The result as the row can hold it; says once where it cannot.
    pub(super) fn storable(&self, result: Encoded) -> Option<String> {
        result.within(self.idem.service().limits().result_limit).unwrap_or_else(|reason| {
            let (job, key) = (self.job.name(), shown(&self.context.key));
            if self.shelter.is_some() {
                tracing::warn!(
                    job,
                    key,
                    reason,
                    "completed without a stored result: a later execution gets `AlreadyCompleted` and cannot go on behind it"
                );
            } else {
                tracing::warn!(
                    job,
                    key,
                    reason,
                    "completed without a stored result: repeats get `AlreadyCompleted`"
                );
            }
            None
        })
    }

    async fn complete(&mut self, result: Option<String>) -> Result<(), Error> {
        let key = self.context.key.clone();
        let ttl = self.job.retention();
        let sent = Instant::now();
        let recorded = if let Some(claim) = self.claim.take() {
            let (finishing, _) = end(claim, store::Ending::Completed { result: result.clone(), ttl });
            finishing.await.map(|answer| matches!(answer, Answer::Written { .. }))
        } else {
            self.record(Status::Completed, result.clone(), None).await
        };
        if let (Ok(true), Some(lease)) = (&recorded, self.shelter.as_ref().and_then(Shelter::lease)) {
            // That of a phase renews the lease of its job.
            lease.renew(sent);
        }
        match recorded {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::ClaimLost { key }),
            Err(failure) => {
                let message = failure.into_error(None).to_string();
                Err(Error::CompletionUnknown { key, result, message })
            }
        }
    }

    async fn fail(&mut self, verdict: OnError, error: String) {
        let ttl = self.job.retention();
        let recorded = match (self.claim.take(), verdict) {
            (Some(claim), verdict) => {
                let ending = match verdict {
                    OnError::Hold => store::Ending::Held { error: Some(error) },
                    OnError::Release => self.release(error),
                    OnError::Record => store::Ending::Failed { error, ttl },
                };
                end(claim, ending).0.await.map(|answer| matches!(answer, Answer::Written { .. }))
            }
            (None, OnError::Record) => self.record(Status::Failed, None, Some(error)).await,
            (None, OnError::Hold | OnError::Release) => return,
        };
        let (job, key) = (self.job.name(), shown(&self.context.key));
        match recorded {
            Ok(true) => {}
            Ok(false) => tracing::warn!(job, key, "claim lost: the job's error was not recorded"),
            Err(failure) => tracing::warn!(job, key, ?failure, "the job's error could not be recorded"),
        }
    }

    fn release(&self, error: String) -> store::Ending {
        let limit = self.idem.service().limits().released_for;
        let purge_after = if self.shelter.is_some() { None } else { self.job.released_for(limit) };
        store::Ending::Released { error: Some(error), purge_after, withdrawn: false }
    }

    /// Without a claim of its own: writes the ending where nothing better stands. The first completion stays. Not so
    /// where the claim is gone that a phase stands under.
    async fn record(
        &self,
        status: Status,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<bool, Failure> {
        let row = job_row(self.job, &self.idem, status, self.fingerprint.clone());
        let owner = match &self.shelter {
            Some(shelter) => shelter.owner().to_owned(),
            None => new_owner().map_err(|_| Failure::Gone)?,
        };
        let row =
            NewRow { owner: Some(owner), result, error, expires: Moment::from(self.job.retention()), ..row };
        let service = self.idem.service().clone();
        let (job, key, shelter) = (self.job, Arc::clone(&self.stored), self.shelter.clone());
        let recording =
            self.idem.service().complete(async move { record(&service, job, key, row, shelter).await });
        recording.await?
    }

    /// How a probe or a body that neither returned nor died leaves its claim.
    fn interrupted(&self) -> store::Ending {
        if self.progress == Progress::Asks {
            return store::Ending::Held { error: None };
        }
        let error = "the body panicked or was dropped before it returned".to_owned();
        let has_returned = self.progress == Progress::Returned;
        if self.job.error_rule() == ErrorRule::ByMark && !self.context.is_marked() && !has_returned {
            return self.release(error);
        }
        store::Ending::Held { error: Some(error) }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            if self.progress == Progress::Asking {
                return self.probe_panicked(claim);
            }
            let ending = self.interrupted();
            let (service, finish, lease) = claim.end(ending);
            service.finish_detached(finish, &lease);
        }
    }
}

/// Sends the end of a claim; it is on its way when this returns.
pub(super) fn end(
    claim: Claim,
    ending: store::Ending,
) -> (impl Future<Output = Result<Answer, Failure>>, Arc<Lease>) {
    // Who gives a phase back says what it knows of its own claim alone.
    let is_final = matches!(ending, store::Ending::Completed { .. } | store::Ending::Failed { .. });
    let job = claim.job().filter(|_| is_final).cloned();
    let (service, finish, lease): (Service, Finish, Arc<Lease>) = claim.end(ending);
    let patience = service.patience_of_an_end(&lease);
    (service.finish(finish, job, patience), lease)
}

/// Writes the ending of a body that had no claim of its own; says whether the claim stands that it is under.
async fn record(
    service: &Service,
    job: &Job,
    key: Arc<str>,
    row: NewRow,
    shelter: Option<Shelter>,
) -> Result<bool, Failure> {
    let patience = match shelter.as_ref().and_then(Shelter::lease) {
        Some(lease) => service.patience_of_an_end(lease),
        None => Patience::new(Instant::now() + service.limits().record_for, None).insisting(),
    };
    let completes = row.status == Status::Completed;
    let (under, claim) = (shelter.as_ref().map(Shelter::under), shelter.as_ref().map(Shelter::claim));
    let insert = || Insert { key: Arc::clone(&key), row: row.clone() };
    let mut answer = service.insert(insert(), claim.clone(), patience).await?;
    let mut is_new = true;
    for _ in 0..LOOKS {
        answer = match answer {
            Answer::Written { .. } => return Ok(true),
            // Nothing but the claim of its job keeps an absent row from being written.
            Answer::Gone if is_new && claim.is_some() => return Ok(false),
            Answer::Gone => {
                is_new = true;
                service.insert(insert(), claim.clone(), patience).await?
            }
            Answer::Found(record) if record::gives_way(&record, record.now, completes, job, under) => {
                is_new = false;
                let mut replace = in_place_of(&record, Arc::clone(&key), row.clone());
                if under.is_some_and(|under| under.outlives(&record)) {
                    (replace.row.attempt, replace.row.takeovers, replace.renew_birth) = (1, 0, true);
                }
                service.replace(replace, claim.clone(), patience).await?
            }
            Answer::Found(record) => {
                tracing::debug!(job = job.name(), status = %record.status, "another ending was recorded first; it stays");
                return Ok(true);
            }
        };
    }
    let message = "others changed the row again and again";
    Err(Failure::Store(StoreError::new(ErrorClass::Transient, "recording an ending", message)))
}

/// An ending in the place of a row that gives way to it.
pub(super) fn in_place_of(record: &Record, key: Arc<str>, row: NewRow) -> Replace {
    let expired = record.status != Status::Released && record.status != Status::Processing;
    let attempt = if expired { 1 } else { record.attempt.saturating_add(1) };
    Replace {
        key,
        expected: record.version(),
        row: NewRow { attempt, takeovers: record.takeovers, ..row },
        raise_fence: true,
        renew_birth: expired,
        audit: None,
    }
}

/// An error's text, as a row can hold it.
pub(super) fn brief(message: Option<String>) -> String {
    const LONGEST: usize = 4 * 1024;
    let mut text = message.unwrap_or_else(|| "the job returned an error that has no text".into());
    text.truncate(text.floor_char_boundary(LONGEST));
    text.replace('\0', "\u{fffd}")
}
