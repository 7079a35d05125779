use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{Answer, Crash, Deliveries, Notice, Settled, Tally, Terminal};

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
    notice: Notice,
}

impl Queue {
    /// A queue that runs so many jobs at once, until notice is given.
    #[must_use]
    pub fn new(workers: u16, notice: Notice) -> Self {
        Self { workers, slots: Arc::new(Semaphore::new(workers.into())), notice }
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
        self.hand_out(deliveries, terminal, move |arguments| Answer::of(job(arguments))).await
    }

    /// Delivers everything to a worker that answers by itself.
    ///
    /// # Errors
    ///
    /// The worker panicked.
    pub async fn hand_out<J, F>(
        &self,
        deliveries: Deliveries<J>,
        terminal: &Terminal,
        worker: impl Fn(J) -> F + Clone + Send + 'static,
    ) -> anyhow::Result<Tally>
    where
        J: Clone + Send + 'static,
        F: Future<Output = Answer> + Send + 'static,
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
            if tally.failure.is_some() || self.notice.is_given() {
                tally.settle(Settled::Refused, 0);
                terminal.advance();
                continue;
            }
            let (slots, worker) = (Arc::clone(&self.slots), worker.clone());
            let notice = self.notice.clone();
            running.spawn(attend(slot, slots, notice, move || worker(arguments.clone())));
        }
        let mut notice = self.notice.clone();
        loop {
            let ended = tokio::select! {
                ended = running.join_next() => ended,
                () = notice.is_over(), if !running.is_empty() => {
                    // What still runs is dropped with the process; its keys are stale then, as after any death.
                    (0..running.len()).for_each(|_| tally.settle(Settled::Refused, 0));
                    break;
                }
            };
            let Some(ended) = ended else { break };
            let (settled, retried) = ended?;
            tally.settle(settled, retried);
            terminal.advance();
        }
        if self.notice.is_given() {
            tally.failure.get_or_insert_with(|| "it was given notice to leave".to_owned());
        }
        terminal.end();
        Ok(tally)
    }
}

/// Delivers one job until it is settled; also says how often it was delivered again.
async fn attend<F>(
    mut slot: OwnedSemaphorePermit,
    slots: Arc<Semaphore>,
    notice: Notice,
    job: impl Fn() -> F,
) -> (Settled, u64)
where
    F: Future<Output = Answer>,
{
    let mut pause = SHORTEST_PAUSE;
    let patient_until = Instant::now() + PATIENCE;
    let mut retried = 0;
    loop {
        let answer = job().await;
        drop(slot);
        let (error, after, stranded) = match answer {
            Answer::Settled(settled) => return (settled, retried),
            Answer::Again { error, after, stranded } => (error, after, stranded),
        };
        if notice.is_given() {
            return (Settled::Refused, retried);
        }
        if Instant::now() >= patient_until {
            return (give_up(error, stranded), retried);
        }
        tokio::time::sleep(after.map_or(pause, |after| after.min(pause))).await;
        let Ok(next) = Arc::clone(&slots).acquire_owned().await else {
            return (give_up(error, stranded), retried);
        };
        slot = next;
        pause = (pause * 2).min(LONGEST_PAUSE);
        retried += 1;
    }
}

fn give_up(error: String, stranded: bool) -> Settled {
    tracing::warn!(%error, "delivered again and again without success, given up");
    if stranded { Settled::Stranded { error } } else { Settled::Refused }
}
