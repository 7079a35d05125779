//! `transactional`: claim, body and completion inside the caller's own transaction, under a savepoint.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use super::{
    Admission, Ending, Execution, LOOKS, Refusal, Ticket, admission,
    admit::{Admitted, Call, Entry, LONGEST_WAIT, SHORTEST_WAIT},
    job_row,
    phase::Shelter,
    report,
    settle::{brief, in_place_of},
    shown,
};
use crate::{
    claim::new_owner,
    error::Error,
    job::OnError,
    key::Key,
    outcome::{Outcome, Slot},
    point::{Point, reached},
    record::{self, Decision, Record, Status, Terms},
    review::turned_over,
    store::{
        self, Answer, Finish, Insert, Moment, NewRow, Replace, Store,
        transaction::{Halt, Transaction},
    },
};

/// How long a refusal waits until the row says that it needs review. What takes longer goes on behind it: the caller's
/// own transaction may hold what that write needs.
const AT_HAND: Duration = Duration::from_millis(100);

/// A caller's transaction, for as long as one job runs in it.
pub(crate) trait Enlist: Send {
    /// A store's rows as the transaction sees them; nothing where it is one of another database.
    fn transaction<'a>(&'a mut self, store: &'a dyn Store) -> Option<Box<dyn Transaction + 'a>>;

    /// What the transaction is, for a message.
    fn describe(&self) -> &'static str;
}

/// Decides whether a call runs in a transaction. If it does, the savepoint is open and the claim made; if not, the
/// transaction is as it was.
pub(crate) async fn begin(ticket: Ticket, place: &'static str, enlist: &mut dyn Enlist) -> Admission {
    let job = ticket.called();
    let slot = Slot::take();
    let admitted = match Call::prepare(ticket, place) {
        Ok(call) => call.begin(enlist).await,
        Err(error) => Err(error),
    };
    admission(job, slot, admitted)
}

/// Settles how the body ended. If this is no error, either all that the body did is in the transaction and the key is
/// completed, or none of it and the key is as it was.
pub(crate) async fn end(
    mut execution: Box<Execution>,
    ending: Ending,
    enlist: &mut dyn Enlist,
) -> Result<(), Error> {
    reached(Point::BodyReturned);
    let slot = execution.slot.take();
    let job = execution.job;
    let outcome = match ending {
        Ending::Completed(_) => Outcome::Executed,
        Ending::Failed { .. } => Outcome::BodyFailed,
    };
    let store = Arc::clone(execution.idem.service().store());
    let ended = match enlist.transaction(&*store) {
        Some(mut transaction) => execution.end(ending, &mut *transaction).await,
        None => Err(execution.lost("the transaction is one of another database")),
    };
    if let Err(error) = ended {
        return Err(Refusal { job, error, slot }.report());
    }
    reached(Point::Ended);
    tracing::debug!(job = job.name(), key = shown(&execution.context.key), ?outcome, "done");
    report(slot.as_ref(), outcome);
    Ok(())
}

/// A claim on its way into the table.
enum Claiming {
    Absent(Box<Insert>),
    Present(Box<Replace>),
}

impl Claiming {
    fn row(&self) -> &NewRow {
        match self {
            Self::Absent(insert) => &insert.row,
            Self::Present(replace) => &replace.row,
        }
    }
}

impl Call {
    async fn begin(mut self, enlist: &mut dyn Enlist) -> Result<Admitted, Error> {
        let store = Arc::clone(self.service().store());
        let kind = enlist.describe();
        let Some(mut transaction) = enlist.transaction(&*store) else {
            return Err(Error::config(format!(
                "`{}` ({}) did not run: it is called in a transaction of {kind}, and its keys are kept in `{}`; a \
                 transactional job needs both in one database",
                self.job.path(),
                self.job.location(),
                store.name(),
            )));
        };
        transaction.begin().await.map_err(|halt| self.halted(halt))?;
        let admitted = self.claim_inside(&mut *transaction).await;
        if let Ok(Admitted::Run(_)) = admitted {
            return admitted;
        }
        match (transaction.roll_back().await, admitted) {
            (Ok(()), admitted) | (Err(_), admitted @ Err(Error::TransactionLost { .. })) => admitted,
            (Err(halt), _) => Err(self.halted(halt)),
        }
    }

    async fn claim_inside(&mut self, transaction: &mut dyn Transaction) -> Result<Admitted, Error> {
        self.stand_under(transaction).await?;
        let mut claiming = Claiming::Absent(Box::new(self.first_claim()?));
        let mut committed =
            if transaction.locks_what_it_meets() { self.look_aside(&self.stored).await? } else { None };
        for _ in 0..LOOKS {
            let answer = match committed.take() {
                Some(record) => Answer::Found(Box::new(record)),
                None => self.write(&claiming, transaction).await?,
            };
            let record = match answer {
                Answer::Written { fence } => {
                    reached(Point::ClaimWritten);
                    let row = claiming.row();
                    let (owner, attempt) = (row.owner.clone(), row.attempt);
                    let entry = Entry { claim: None, owner, fence, attempt, born: None };
                    return Ok(Admitted::Run(self.execution(entry)?));
                }
                Answer::Found(record) => record,
                Answer::Gone => {
                    claiming = Claiming::Absent(Box::new(self.first_claim()?));
                    continue;
                }
            };
            claiming = match record::decide(Some(&record), record.now, &self.terms()) {
                Decision::Run(standing) => Claiming::Present(Box::new(self.next_claim(&record, standing)?)),
                Decision::Flag => {
                    self.flag_aside(&record).await;
                    return Err(self.needs_review(turned_over(*record)).await);
                }
                answer => return self.answer(answer, record).await,
            };
        }
        Err(self.in_progress(Some(SHORTEST_WAIT)))
    }

    /// Writes the claim, waiting as long as the job wants to for a transaction that is about to write the same key.
    async fn write(&self, claiming: &Claiming, transaction: &mut dyn Transaction) -> Result<Answer, Error> {
        loop {
            let left = self.waits_until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or_default();
            let written = match claiming {
                Claiming::Absent(insert) => transaction.insert(insert, left).await,
                Claiming::Present(replace) => transaction.replace(replace, left).await,
            };
            match written {
                Ok(answer) => return Ok(answer),
                Err(Halt::Locked) if self.waits_until.is_some_and(|until| Instant::now() < until) => {
                    transaction.roll_back().await.map_err(|halt| self.halted(halt))?;
                    self.check_open()?;
                    let pause = self.service().sleep(SHORTEST_WAIT).await;
                    pause.map_err(|failure| failure.into_error(Some(&self.key)))?;
                    transaction.begin().await.map_err(|halt| self.halted(halt))?;
                }
                Err(halt) => return Err(self.halted(halt)),
            }
        }
    }

    /// Turns a stale claim into one that needs review: outside of the transaction, which may be rolled back.
    async fn flag_aside(&self, record: &Record) {
        let mut flagging = pin!(self.flagging(record));
        let mut pause = pin!(self.service().sleep(AT_HAND));
        poll_fn(|cx| {
            if flagging.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            pause.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    pub(super) fn halted(&self, halt: Halt) -> Error {
        match halt {
            Halt::Locked => self.in_progress(Some(LONGEST_WAIT)),
            halt => halted(&self.key, halt),
        }
    }
}

impl Execution {
    async fn end(&self, ending: Ending, transaction: &mut dyn Transaction) -> Result<(), Error> {
        if let Ending::Completed(_) = ending {
            self.stay_under(transaction).await?;
        }
        match ending {
            Ending::Completed(result) => {
                let result = self.storable(result);
                self.complete_inside(result, transaction).await
            }
            Ending::Failed { verdict, message } => {
                let verdict = verdict.unwrap_or_else(|| self.verdict());
                self.undo(transaction).await?;
                if verdict == OnError::Record {
                    self.record_inside(brief(message), transaction).await?;
                }
                Ok(())
            }
        }
    }

    /// Makes sure that the claim stands that a phase is under, and renews it: if it does not, what the body did is undone.
    async fn stay_under(&self, transaction: &mut dyn Transaction) -> Result<(), Error> {
        let Some(shelter) = self.shelter.as_ref().filter(|shelter| !shelter.is_inside()) else {
            return Ok(());
        };
        let stands = transaction.stands(&shelter.claim()).await;
        if let Ok(true) = stands {
            return Ok(());
        }
        let undone = transaction.roll_back().await;
        Err(match (stands, undone) {
            (Err(halt), Ok(())) | (_, Err(halt)) => self.halted(halt),
            (Ok(_), Ok(())) => Error::ClaimLost { key: self.context.key.clone() },
        })
    }

    async fn complete_inside(
        &self,
        result: Option<String>,
        transaction: &mut dyn Transaction,
    ) -> Result<(), Error> {
        let finish = Finish {
            key: Arc::clone(&self.stored),
            owner: self.context.owner.clone().unwrap_or_default(),
            fence: self.context.fence,
            ending: store::Ending::Completed { result, ttl: self.job.retention() },
        };
        let halt = match transaction.finish(&finish).await {
            Ok(Answer::Written { .. }) => match transaction.release().await {
                Ok(()) => {
                    reached(Point::EndingWritten);
                    return Ok(());
                }
                Err(halt) => halt,
            },
            Ok(Answer::Found(_) | Answer::Gone) => Halt::Lost(GONE.into()),
            Err(halt) => halt,
        };
        // What made this impossible is worth telling, whether or not there is still something to undo.
        let undone = transaction.roll_back().await;
        Err(match (halt, undone) {
            (halt @ Halt::Lost(_), _) | (halt, Ok(())) => self.halted(halt),
            (_, Err(lost)) => self.halted(lost),
        })
    }

    /// Undoes what the body did, and makes sure that this was all there was to undo.
    async fn undo(&self, transaction: &mut dyn Transaction) -> Result<(), Error> {
        let is_open = transaction.is_open();
        let stands = match transaction.read(&self.stored).await {
            Ok(_) if !is_open => true,
            Ok(record) => record.is_some_and(|record| {
                record.owner == self.context.owner && record.fence == self.context.fence
            }),
            Err(Halt::Lost(_)) => false,
            // What the body ran into. The rollback shows whether the savepoint stands.
            Err(_) => is_open,
        };
        transaction.roll_back().await.map_err(|halt| self.halted(halt))?;
        if stands { Ok(()) } else { Err(self.lost(GONE)) }
    }

    /// Records that the job failed for good, if the caller commits.
    async fn record_inside(&self, error: String, transaction: &mut dyn Transaction) -> Result<(), Error> {
        let row = NewRow {
            owner: Some(new_owner()?),
            error: Some(error),
            expires: Moment::from(self.job.retention()),
            ..job_row(self.job, &self.idem, Status::Failed, self.fingerprint.clone())
        };
        transaction.begin().await.map_err(|halt| self.halted(halt))?;
        let halt = match self.write_failure(row, transaction).await {
            Ok(()) => match transaction.release().await {
                Ok(()) => return Ok(()),
                Err(halt) => halt,
            },
            Err(halt) => halt,
        };
        transaction.roll_back().await.map_err(|halt| self.halted(halt))?;
        let (job, key) = (self.job.name(), shown(&self.context.key));
        tracing::warn!(job, key, ?halt, "the job's error could not be recorded");
        Ok(())
    }

    async fn write_failure(&self, row: NewRow, transaction: &mut dyn Transaction) -> Result<(), Halt> {
        let insert = Insert { key: Arc::clone(&self.stored), row };
        let foreign_stale_after = self.idem.service().limits().foreign_stale_after;
        let terms = Terms {
            job: self.job,
            fingerprint: self.fingerprint.as_deref(),
            foreign_stale_after,
            under: self.shelter.as_ref().map(Shelter::under),
        };
        let mut answer = transaction.insert(&insert, Duration::ZERO).await?;
        for _ in 0..LOOKS {
            answer = match answer {
                // Since the savepoint was rolled back the key may be somebody else's.
                Answer::Found(record)
                    if matches!(record::decide(Some(&record), record.now, &terms), Decision::Run(_)) =>
                {
                    let replace = in_place_of(&record, Arc::clone(&self.stored), insert.row.clone());
                    transaction.replace(&replace, Duration::ZERO).await?
                }
                Answer::Gone => transaction.insert(&insert, Duration::ZERO).await?,
                Answer::Written { .. } | Answer::Found(_) => return Ok(()),
            };
        }
        Err(Halt::Locked)
    }

    fn halted(&self, halt: Halt) -> Error {
        halted(&self.context.key, halt)
    }

    fn lost(&self, what: &'static str) -> Error {
        Error::TransactionLost { key: self.context.key.clone(), source: what.into() }
    }
}

const GONE: &str = "the claim that was made in it is not there any more";

/// What a caller is told of a transaction that does not go on.
fn halted(key: &Key, halt: Halt) -> Error {
    let key = key.clone();
    match halt {
        Halt::Locked => {
            Error::TransactionConflict { key, source: "another transaction holds the row".into() }
        }
        Halt::Outside => Error::NotInTransaction { key },
        Halt::Conflict(source) => Error::TransactionConflict { key, source },
        Halt::Aborted(source) | Halt::Lost(source) => Error::TransactionLost { key, source },
        Halt::Refused(error) => {
            Error::Store { key: Some(key), message: error.to_string(), source: Some(error.source) }
        }
    }
}
