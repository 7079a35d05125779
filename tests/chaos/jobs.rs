//! The jobs, one of each [`Kind`].

use std::{
    collections::BTreeSet,
    fmt, panic,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use idem_runtime::{
    Error, Idem, Outcome, Probe, current, idempotent, phase, with_outcome, with_outcome_sync,
};
use idem_tests::Ledger;
use sqlx::{Pool, Transaction};
use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    bank::{self, Bank, Dialect, on_pool},
    book::{Book, Line, Phase, Step},
    delivery::{Delivery, End, Fate, How},
    key::Kind,
    settings::Broken,
};

/// What a worker works with.
#[derive(Debug)]
pub(crate) struct Hand {
    pub(crate) idem: Idem,
    pub(crate) ledger: Ledger,
    /// The same ledger, to look in.
    pub(crate) book: Mutex<Book>,
    pub(crate) bank: Bank,
    pub(crate) broken: Option<Broken>,
    /// The deliveries whose bodies came to their end.
    pub(crate) returned: Mutex<BTreeSet<u64>>,
}

#[derive(Debug)]
enum Fault {
    Idem(Error),
    Database(sqlx::Error),
    Own,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idem(error) => error.fmt(f),
            Self::Database(error) => error.fmt(f),
            Self::Own => f.write_str("the job failed as planned"),
        }
    }
}

type Done = Result<u64, Fault>;

#[idempotent(key = "charge:<d.key.number>", stale_after = "1s", idem = w.idem)]
async fn charge(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(key = "report:<d.key.number>", stale_after = "1s", idem = w.idem)]
async fn report(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(key = "invoice:<d.key.number>", stale_after = "2s", on_error = "by_mark", idem = w.idem)]
async fn invoice(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(
    key = "ship:<d.key.number>",
    stale_after = "1s",
    on_stale = "retry",
    on_busy = "wait",
    wait_for = "1s",
    idem = w.idem
)]
async fn ship(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(key = "rebuild:<d.key.number>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn rebuild(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(key = "notify:<d.key.number>", stale_after = "3s", on_stale = "retry", idem = w.idem)]
async fn notify(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(key = "press:<d.key.number>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
fn press(w: &Hand, d: &Delivery) -> Done {
    w.record(Step::Begin, d);
    thread::sleep(Duration::from_millis(d.before));
    finish(w, d)
}

// Nobody drops a synchronous body whose lease is lost: it goes on beside its heir, and comes to its phases.
#[idempotent(key = "order:<d.key.number>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
fn order(w: &Hand, d: &Delivery) -> Done {
    w.record(Step::Begin, d);
    let (attempt, fence) = (current().attempt(), current().fence());
    let acts = |phase| {
        thread::sleep(Duration::from_millis(d.before / 6));
        for _ in 0..w.effects(d) {
            w.ledger.record(Line::of(Step::Phase(phase), d, attempt, fence));
        }
        thread::sleep(Duration::from_millis(d.before / 6));
        Ok(d.id)
    };
    phase!("charge", || acts(Phase::Charge));
    phase!("reserve", on_stale = "retry", || acts(Phase::Reserve));
    phase!("receipt", mode = "record_after", || acts(Phase::Receipt));
    finish(w, d)
}

/// What is left of a synchronous body from its effect on.
fn finish(w: &Hand, d: &Delivery) -> Done {
    fall(d.fate, Fate::PanicsBeforeEffect, Fate::FailsBeforeEffect)?;
    w.effect(d);
    thread::sleep(Duration::from_millis(d.after));
    fall(d.fate, Fate::PanicsAfterEffect, Fate::FailsAfterEffect)?;
    Ok(w.returns(d))
}

#[idempotent(key = "mail:<d.key.number>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Hand, d: &Delivery) -> Done {
    act(w, d).await
}

#[idempotent(key = "credit:<d.key.number>", mode = "transactional", wait_for = "2s", idem = w.idem)]
async fn credit<DB: Dialect>(w: &Hand, tx: &mut Transaction<'_, DB>, d: &Delivery) -> Done {
    w.record(Step::Begin, d);
    sleep(Duration::from_millis(d.before)).await;
    fall(d.fate, Fate::PanicsBeforeEffect, Fate::FailsBeforeEffect)?;
    for _ in 0..w.effects(d) {
        bank::credit(tx, d.key, d).await?;
    }
    sleep(Duration::from_millis(d.after)).await;
    fall(d.fate, Fate::PanicsAfterEffect, Fate::FailsAfterEffect)?;
    Ok(w.returns(d))
}

async fn act(w: &Hand, d: &Delivery) -> Done {
    w.record(Step::Begin, d);
    sleep(Duration::from_millis(d.before)).await;
    fall(d.fate, Fate::PanicsBeforeEffect, Fate::FailsBeforeEffect)?;
    current().effect_starts();
    w.effect(d);
    sleep(Duration::from_millis(d.after)).await;
    fall(d.fate, Fate::PanicsAfterEffect, Fate::FailsAfterEffect)?;
    Ok(w.returns(d))
}

fn fall(fate: Fate, panics: Fate, fails: Fate) -> Result<(), Fault> {
    if fate == panics {
        // As a panic that nobody reports: this one is planned.
        panic::resume_unwind(Box::new("planned"));
    }
    if fate == fails { Err(Fault::Own) } else { Ok(()) }
}

impl Hand {
    #[idempotent(
        key = "transfer:<d.key.number>",
        stale_after = "1s",
        on_stale = probe(Self::was_transferred),
        idem = self.idem
    )]
    async fn transfer(&self, d: &Delivery) -> Done {
        act(self, d).await
    }

    /// Looks in the ledger, and answers with what is there.
    async fn was_transferred(&self, d: &Delivery) -> Probe<u64> {
        // A provider takes its time.
        sleep(Duration::from_millis(d.before / 2)).await;
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.refresh();
        match book.effects(d.key).first() {
            Some(effect) if self.broken != Some(Broken::Lies) => Probe::Happened(effect.delivery),
            _ => Probe::DidNotHappen,
        }
    }

    /// The outside effect of a body.
    fn effect(&self, d: &Delivery) {
        for _ in 0..self.effects(d) {
            self.record(Step::Effect, d);
        }
    }

    fn record(&self, step: Step, d: &Delivery) {
        self.ledger.record(Line::of(step, d, current().attempt(), current().fence()));
    }

    /// How many effects this worker has where one is due.
    fn effects(&self, d: &Delivery) -> usize {
        match self.broken {
            Some(Broken::Twice) if d.id % 50 == 7 => 2,
            Some(Broken::Skips) if d.id % 50 == 7 => 0,
            _ => 1,
        }
    }

    /// What a body returns at its end.
    fn returns(&self, d: &Delivery) -> u64 {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).insert(d.id);
        d.id
    }

    /// Runs the job of a delivery.
    pub(crate) async fn work(self: Arc<Self>, d: Delivery) -> End {
        if self.broken == Some(Broken::Bypasses) && d.id % 100 == 7 {
            self.effect(&d);
            return End::Done { how: How::Executed, value: d.id };
        }
        let (w, d) = (&self, &d);
        let end = match d.key.kind {
            Kind::Charge => end_of(with_outcome(charge(w, d)).await),
            Kind::Report => end_of(with_outcome(report(w, d)).await),
            Kind::Invoice => end_of(with_outcome(invoice(w, d)).await),
            Kind::Ship => end_of(with_outcome(ship(w, d)).await),
            Kind::Rebuild => end_of(with_outcome(rebuild(w, d)).await),
            Kind::Notify => end_of(with_outcome(notify(w, d)).await),
            Kind::Transfer => end_of(with_outcome(w.transfer(d)).await),
            Kind::Mail => end_of(with_outcome(mail(w, d)).await),
            Kind::Press => on_a_thread(w, *d, press).await,
            Kind::Order => on_a_thread(w, *d, order).await,
            Kind::Credit => on_pool!(&w.bank, pool => commit(w, pool, d).await),
        };
        let has_returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner).remove(&d.id);
        let end = match end {
            End::Refused { kind, retryable, retry_after, returned } => {
                End::Refused { kind, retryable, retry_after, returned: returned || has_returned }
            }
            end => end,
        };
        match self.broken {
            Some(Broken::Deaf) if end.is_refused_as("ClaimLost") => {
                End::Done { how: How::Executed, value: d.id }
            }
            _ => end,
        }
    }
}

/// A synchronous job.
async fn on_a_thread(w: &Arc<Hand>, d: Delivery, job: fn(&Hand, &Delivery) -> Done) -> End {
    let w = Arc::clone(w);
    match spawn_blocking(move || with_outcome_sync(|| job(&w, &d))).await {
        Ok(done) => end_of(done),
        Err(_) => End::Panicked,
    }
}

/// A job in a transaction of its own.
async fn commit<DB: Dialect>(w: &Hand, pool: &Pool<DB>, d: &Delivery) -> End {
    let mut tx = match pool.begin_with(DB::BEGIN).await {
        Ok(tx) => tx,
        Err(error) => return End::NotCommitted(error.to_string()),
    };
    let end = end_of(with_outcome(credit(w, &mut tx, d)).await);
    match end {
        End::Done { .. } => match tx.commit().await {
            Ok(()) => end,
            Err(error) => End::NotCommitted(error.to_string()),
        },
        _ => end,
    }
}

fn end_of((result, outcome): (Done, Option<Outcome>)) -> End {
    match result {
        Ok(value) => {
            let how = match outcome {
                Some(Outcome::Executed) => How::Executed,
                Some(Outcome::TookOver) => How::TookOver,
                Some(Outcome::Probed) => How::Probed,
                Some(Outcome::Replayed) => How::Replayed,
                other => panic!("a success whose outcome is {other:?}"),
            };
            End::Done { how, value }
        }
        Err(Fault::Own) => End::Failed,
        Err(Fault::Database(error)) => End::NotCommitted(error.to_string()),
        Err(Fault::Idem(error)) => End::Refused {
            kind: format!("{:?}", error.kind()),
            retryable: error.is_retryable(),
            retry_after: error
                .retry_after()
                .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            // With the error of a phase.
            returned: outcome == Some(Outcome::BodyFailed),
        },
    }
}
