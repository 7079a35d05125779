use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use idem_runtime::{Error, ErrorKind, Outcome, with_outcome};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{Crash, Deliveries, Settled, Tally, Terminal};

/// The first pause before a job is delivered again; each further one is twice as long.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long a job is delivered again and again.
const PATIENCE: Duration = Duration::from_secs(30);

/// A queue as they all are: it delivers at least once, and again after an error that may pass.
#[derive(Debug)]
pub struct Queue {
    workers: u16,
    /// One for each job that may run.
    slots: Arc<Semaphore>,
}

impl Queue {
    /// A queue that runs so many jobs at once.
    #[must_use]
    pub fn new(workers: u16) -> Self {
        Self { workers, slots: Arc::new(Semaphore::new(workers.into())) }
    }

    /// A crash of the process in the effect of this number, if one is wanted.
    #[must_use]
    pub fn crash(&self, at: Option<u64>) -> Crash {
        Crash::new(at, Arc::clone(&self.slots), u32::from(self.workers) - 1)
    }

    /// Delivers everything, and again where that may help, until it is settled.
    ///
    /// # Errors
    ///
    /// A job panicked.
    pub async fn deliver<J, T, F>(
        &self,
        deliveries: Deliveries<J>,
        terminal: &Terminal,
        job: impl Fn(J) -> F + Clone + Send + 'static,
    ) -> anyhow::Result<Tally>
    where
        J: Clone + Send + 'static,
        T: 'static,
        F: Future<Output = anyhow::Result<T>> + Send + 'static,
    {
        let malformed = deliveries.malformed();
        let jobs = deliveries.into_jobs();
        let well_formed = u64::try_from(jobs.len())?;
        let mut tally = Tally { deliveries: well_formed + malformed, malformed, ..Tally::default() };
        terminal.begin(well_formed);
        let mut running = JoinSet::new();
        for arguments in jobs {
            let slot = Arc::clone(&self.slots).acquire_owned().await?;
            while let Some(ended) = running.try_join_next() {
                let (settled, retried) = ended?;
                tally.settle(settled, retried);
                terminal.advance();
            }
            if tally.failure.is_some() {
                tally.settle(Settled::Refused, 0);
                terminal.advance();
                continue;
            }
            let (slots, job) = (Arc::clone(&self.slots), job.clone());
            running.spawn(attend(slot, slots, move || job(arguments.clone())));
        }
        while let Some(ended) = running.join_next().await {
            let (settled, retried) = ended?;
            tally.settle(settled, retried);
            terminal.advance();
        }
        terminal.end();
        Ok(tally)
    }
}

/// Delivers one job until it is settled; also says how often it was delivered again.
async fn attend<T, F>(
    mut slot: OwnedSemaphorePermit,
    slots: Arc<Semaphore>,
    job: impl Fn() -> F,
) -> (Settled, u64)
where
    F: Future<Output = anyhow::Result<T>>,
{
    let mut pause = SHORTEST_PAUSE;
    let patient_until = Instant::now() + PATIENCE;
    let mut retried = 0;
    loop {
        let (answer, outcome) = with_outcome(job()).await;
        drop(slot);
        let error = match (answer, outcome) {
            (Ok(_), Some(Outcome::Replayed)) => return (Settled::Replayed, retried),
            (Ok(_), _) => return (Settled::Executed, retried),
            (Err(error), _) => error,
        };
        match judge(&error) {
            Verdict::Settled(settled) => return (settled, retried),
            Verdict::Again { after } if Instant::now() < patient_until => {
                tokio::time::sleep(after.map_or(pause, |after| after.min(pause))).await;
            }
            Verdict::Again { .. } => return (give_up(&error), retried),
        }
        let Ok(next) = Arc::clone(&slots).acquire_owned().await else { return (give_up(&error), retried) };
        slot = next;
        pause = (pause * 2).min(LONGEST_PAUSE);
        retried += 1;
    }
}

/// What a queue makes of an error.
enum Verdict {
    Settled(Settled),
    Again { after: Option<Duration> },
}

/// An error of the job itself may pass, and so may those of the library that say so. A key under review waits for a
/// person, which takes longer than this run.
fn judge(error: &anyhow::Error) -> Verdict {
    match error.downcast_ref::<Error>() {
        Some(Error::NeedsReview { key, .. }) => {
            Verdict::Settled(Settled::NeedsReview { key: key.to_string(), error: error.to_string() })
        }
        Some(error) if !error.is_retryable() => {
            tracing::warn!(%error, "refused");
            Verdict::Settled(Settled::Refused)
        }
        Some(error) => Verdict::Again { after: error.retry_after() },
        None => Verdict::Again { after: None },
    }
}

fn give_up(error: &anyhow::Error) -> Settled {
    tracing::warn!(%error, "delivered again and again without success, given up");
    match error.downcast_ref::<Error>().map(Error::kind) {
        Some(ErrorKind::Store | ErrorKind::ServiceGone) => Settled::Stranded { error: error.to_string() },
        _ => Settled::Refused,
    }
}
