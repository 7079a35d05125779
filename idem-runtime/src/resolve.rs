//! What a person decides about a key that stopped.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::time::sleep;

use crate::{
    error::Error,
    idem::{Idem, store_error},
    record::{Record, Status},
    service::{LONGEST_STATEMENT, within},
    store::{Answer, Audit, ErrorClass, Moment, NewRow, Replace, Reply, StoreError},
};

/// The pause before a write is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// What a person found out about a key's effect.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Resolution {
    /// It happened. Repeats replay the given result, or get `Error::AlreadyCompleted`.
    Completed(Option<Value>),
    /// It did not happen: the key is free. Re-enqueue the job.
    Retry,
    /// It did not happen and never will: repeats get `Error::PreviouslyFailed`.
    Failed,
}

impl Resolution {
    fn status(&self) -> Status {
        match self {
            Self::Completed(_) => Status::Completed,
            Self::Retry => Status::Released,
            Self::Failed => Status::Failed,
        }
    }
}

/// What became of a resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolved {
    /// The row says so now.
    #[non_exhaustive]
    Changed {
        /// The state before.
        from: Status,
        /// The state now.
        to: Status,
        /// Whether the job has to be enqueued again for the key to go on.
        reenqueue: bool,
    },
    /// Nothing was changed, and why.
    #[non_exhaustive]
    Refused {
        /// Why, and what would help.
        reason: String,
    },
    /// There is no row of this key.
    NotFound,
}

type Deciding = Pin<Box<dyn Future<Output = Result<Resolved, Error>> + Send>>;

/// A resolution in the making: `idem.resolve(key, Resolution::Retry).note("not in the ledger").await`.
///
/// It re-checks the row's state, owner and fence in the statement that writes, is refused while the holder is seen
/// alive, and leaves a line in the audit table.
#[derive(Debug)]
#[must_use = "a resolution does nothing until it is awaited"]
pub struct Resolve {
    deed: Deed,
    resolution: Resolution,
}

impl Resolve {
    pub(crate) fn new(idem: Idem, key: String, resolution: Resolution) -> Self {
        Self { deed: Deed::new(idem, key), resolution }
    }

    /// Why: for the audit table.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.deed.note = note.into();
        self
    }

    /// Who: for the audit table; the worker label by default.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.deed.actor = actor.into();
        self
    }

    /// Also where the holder is seen alive or the key is completed. The fence is raised, so that the holder's own
    /// completion is refused.
    pub fn force(mut self) -> Self {
        self.deed.force = true;
        self
    }

    async fn decide(self) -> Result<Resolved, Error> {
        let Self { deed, resolution } = self;
        let to = resolution.status();
        let record = match deed.look(to.as_str()).await? {
            Look::At(record) => record,
            Look::Answer(resolved) => return Ok(resolved),
        };
        let reenqueue = resolution == Resolution::Retry;
        let alive = record.is_alive(record.now, deed.idem.service().limits().foreign_stale_after);
        let replace = Replace {
            key: record.key.as_str().into(),
            expected: record.version(),
            raise_fence: alive || (deed.force && record.status != Status::NeedsReview),
            renew_birth: false,
            audit: Some(deed.audit(&record, to.as_str())),
            row: deed.row(&record, resolution),
        };
        let store = Arc::clone(deed.idem.service().store());
        let until = deed.until();
        let result = replace.row.result.clone();
        let sent = deed.write(async move { patiently(until, || store.replace(&replace)).await }).await?;
        let by_us = |now: &Record| {
            sent.again && now.status == to && now.owner == record.owner && now.result == result
        };
        match sent.answer {
            Answer::Found(now) if !by_us(&now) => Ok(changed_meanwhile(&now.status)),
            Answer::Written { .. } | Answer::Found(_) => {
                Ok(Resolved::Changed { from: record.status, to, reenqueue })
            }
            Answer::Gone => Ok(Resolved::NotFound),
        }
    }
}

impl IntoFuture for Resolve {
    type Output = Result<Resolved, Error>;
    type IntoFuture = Deciding;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.decide())
    }
}

/// Deletes a key and its history: `idem.forget(key).note("test data").await`. The next call of its job runs afresh.
///
/// It re-checks the row in the statement that deletes, is refused while the holder is seen alive, and leaves a line in
/// the audit table.
#[derive(Debug)]
#[must_use = "nothing is forgotten until it is awaited"]
pub struct Forget {
    deed: Deed,
}

impl Forget {
    pub(crate) fn new(idem: Idem, key: String) -> Self {
        Self { deed: Deed::new(idem, key) }
    }

    /// Why: for the audit table.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.deed.note = note.into();
        self
    }

    /// Who: for the audit table; the worker label by default.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.deed.actor = actor.into();
        self
    }

    /// Also where the holder is seen alive or the key is completed.
    pub fn force(mut self) -> Self {
        self.deed.force = true;
        self
    }

    async fn decide(self) -> Result<Resolved, Error> {
        const FORGOTTEN: &str = "forgotten";
        let record = match self.deed.look(FORGOTTEN).await? {
            Look::At(record) => record,
            Look::Answer(resolved) => return Ok(resolved),
        };
        let audit = self.deed.audit(&record, FORGOTTEN);
        let store = Arc::clone(self.deed.idem.service().store());
        let (key, expected) = (record.key.clone(), record.version());
        let until = self.deed.until();
        let forgetting = async move { patiently(until, || store.forget(&key, &expected, &audit)).await };
        let sent = self.deed.write(forgetting).await?;
        let by_us =
            async || Ok::<_, Error>(sent.again && self.deed.idem.lookup(&self.deed.key).await?.is_none());
        if sent.answer || by_us().await? {
            let to = Status::Other(FORGOTTEN.into());
            Ok(Resolved::Changed { from: record.status, to, reenqueue: true })
        } else {
            Ok(changed_meanwhile(&record.status))
        }
    }
}

impl IntoFuture for Forget {
    type Output = Result<Resolved, Error>;
    type IntoFuture = Deciding;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.decide())
    }
}

fn changed_meanwhile(status: &Status) -> Resolved {
    Resolved::Refused {
        reason: format!("the row changed in the meantime (it was last seen `{status}`); look again"),
    }
}

/// What a statement was answered.
pub(crate) struct Sent<T> {
    pub(crate) answer: T,
    /// It was sent more than once: an earlier sending, whose reply was lost, may be what the answer tells of.
    again: bool,
}

/// Sends a statement until it is answered. A lost reply makes no second write: each names the version that it expects.
pub(crate) async fn patiently<'a, T>(
    until: Option<Instant>,
    send: impl Fn() -> Reply<'a, T> + Send,
) -> Result<Sent<T>, StoreError> {
    let Some(until) = until else { return Ok(Sent { answer: send().await?, again: false }) };
    let mut again = false;
    loop {
        let limit = LONGEST_STATEMENT.min(until.saturating_duration_since(Instant::now()));
        let error = match within(limit, "waiting for the database", send()).await {
            Err(error) if error.class != ErrorClass::Permanent => error,
            done => return done.map(|answer| Sent { answer, again }),
        };
        if Instant::now() >= until {
            return Err(error);
        }
        again |= error.class == ErrorClass::Transient;
        sleep(PAUSE).await;
    }
}

/// Who does what to which key, and why.
#[derive(Debug)]
struct Deed {
    idem: Idem,
    key: String,
    actor: String,
    note: String,
    force: bool,
}

/// The row that a deed is about, or why there is nothing to do.
enum Look {
    At(Box<Record>),
    Answer(Resolved),
}

impl Deed {
    fn new(idem: Idem, key: String) -> Self {
        let actor = idem.worker().to_owned();
        Self { idem, key, actor, note: String::new(), force: false }
    }

    async fn look(&self, to: &str) -> Result<Look, Error> {
        let Some(record) = self.idem.lookup(&self.key).await? else {
            return Ok(Look::Answer(Resolved::NotFound));
        };
        let alive = record.is_alive(record.now, self.idem.service().limits().foreign_stale_after);
        let reason = match &record.status {
            _ if self.force => None,
            Status::Processing | Status::NeedsReview if alive => {
                let owner = record.owner.as_deref().unwrap_or("a foreign worker");
                let worker = record.worker.as_deref().unwrap_or("unknown");
                let left = record.lease_until.map_or(0, |end| end - record.now) / 1_000_000;
                Some(format!(
                    "its holder is alive (owner {owner}, worker {worker}, lease for {left} s more); wait, or force it"
                ))
            }
            Status::Completed => Some("it is completed; force it to change that".to_owned()),
            Status::Other(word) => Some(format!("`{word}` is not a state of ours; force it to change that")),
            status if status.as_str() == to => Some(format!("it is `{to}` already")),
            _ => None,
        };
        Ok(match reason {
            Some(reason) => Look::Answer(Resolved::Refused { reason }),
            None => Look::At(Box::new(record)),
        })
    }

    fn audit(&self, record: &Record, to: &str) -> Audit {
        Audit {
            actor: self.actor.clone(),
            from_status: record.status.to_string(),
            to_status: to.to_owned(),
            note: self.note.clone(),
            old_result: record.result.clone(),
        }
    }

    /// The row with its history, in its new state.
    fn row(&self, record: &Record, resolution: Resolution) -> NewRow {
        let status = resolution.status();
        let expires = match status {
            // The next execution goes on where the phases ended.
            Status::Released if record.is_phase() || !record.phases.is_empty() => Moment::Never,
            Status::Released => Moment::In(self.idem.service().limits().released_for),
            _ => Moment::Never,
        };
        NewRow {
            lease: Moment::Never,
            expires,
            result: match resolution {
                Resolution::Completed(result) => result.map(|json| json.to_string()),
                Resolution::Retry | Resolution::Failed => None,
            },
            error: match status {
                Status::Failed if !self.note.is_empty() => Some(self.note.clone()),
                _ => record.error.clone(),
            },
            ..NewRow::with_history(record, status)
        }
    }

    /// Until when a busy or absent store is waited for; a store that answers at once needs no clock.
    fn until(&self) -> Option<Instant> {
        let service = self.idem.service();
        (!service.store().is_local()).then(|| service.patience(None).until)
    }

    /// Writes, whatever becomes of the caller.
    async fn write<T: Send + 'static>(
        &self,
        writing: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, Error> {
        let written =
            self.idem.service().complete(writing).await.map_err(|failure| failure.into_error(None))?;
        written.map_err(store_error)
    }
}
