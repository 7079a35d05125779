//! The background thread: one queue, own connections, whatever waits goes out as one statement.
//!
//! A job's future may be dropped at any point and a job's body may block its executor; neither reaches a statement,
//! because all of them run here. A store that answers at once (`memory:`) is called on the caller's own thread.

mod queue;
mod work;

use std::{
    future::Future,
    pin::Pin,
    process,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, oneshot};

use self::work::{Work, perform_alone};
use crate::{
    alert::Hook,
    block_on::block_on,
    claim::{Claim, ClaimTerms, Lease},
    error::Error,
    heartbeat::Live,
    key::Key,
    point::is_dead,
    record::Record,
    store::{Answer, ErrorClass, Finish, Insert, Renew, Replace, Store, StoreError},
};

/// The limits that the builder sets.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// How long a claim or a look-up waits for a busy or absent store.
    pub(crate) store_timeout: Duration,
    /// How long `record_after` tries to record.
    pub(crate) record_for: Duration,
    /// When a claim without owner counts as stale.
    pub(crate) foreign_stale_after: Duration,
    /// What `NeedsReview` answers as `retry_after`.
    pub(crate) review_after: Duration,
    /// How long a released row is kept.
    pub(crate) released_for: Duration,
    /// The longest result that is stored, in bytes of JSON.
    pub(crate) result_limit: usize,
    /// How many claims and look-ups may wait.
    pub(crate) queue: usize,
    /// When a claim that is renewed on and on is worth an alert; `None` is ten of its leases.
    pub(crate) overdue_after: Option<Duration>,
}

/// Why the service did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store said so, for as long as the request was willing to wait.
    Store(StoreError),
    /// Too many requests wait already.
    Full,
    /// The thread is gone.
    Gone,
}

impl Failure {
    /// The error of a call whose body did not run.
    pub(crate) fn into_error(self, key: Option<&Key>) -> Error {
        let key = key.cloned();
        match self {
            Self::Store(error) => {
                let message = error.to_string();
                Error::Store { key, message, source: Some(error.source) }
            }
            Self::Full => Error::Store {
                key,
                message: "too many claims wait for the store; deliver again later".into(),
                source: None,
            },
            Self::Gone => Error::ServiceGone { key },
        }
    }
}

/// What the store answered.
#[derive(Debug)]
enum Done {
    Granted(Claim),
    Answer(Answer),
    Read(Option<Box<Record>>),
}

/// How long a request is worth trying.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// When to give up.
    pub(crate) until: Instant,
    /// How long one statement may take.
    pub(crate) statement: Duration,
    /// Whether a refusal is tried again as well: an ending may meet a database that is read-only for a moment.
    pub(crate) insist: bool,
}

/// The longest that any statement may take.
pub(crate) const LONGEST_STATEMENT: Duration = Duration::from_millis(2_500);

impl Patience {
    /// Patience with a lease: statements stay below a third of it.
    pub(crate) fn new(until: Instant, lease: Option<Duration>) -> Self {
        let third = lease.map_or(LONGEST_STATEMENT, |lease| lease / 3);
        Self { until, statement: third.min(LONGEST_STATEMENT), insist: false }
    }

    pub(crate) fn insisting(self) -> Self {
        Self { insist: true, ..self }
    }
}

/// What the store answers within a limit. A connection may be dead, and nobody says so.
pub(crate) async fn within<T>(
    limit: Duration,
    context: &'static str,
    reply: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(limit, reply).await;
    answer.unwrap_or_else(|_| {
        let message = format!("no answer within {limit:?}");
        Err(StoreError::new(ErrorClass::Transient, context, message))
    })
}

/// A request on its way through the queue.
#[derive(Debug)]
struct Request {
    work: Work,
    /// Where the work asks for a claim: its terms, and who takes it back from a caller that is gone.
    claims: Option<(Service, ClaimTerms)>,
    patience: Patience,
    reply: oneshot::Sender<Result<Done, Failure>>,
    /// Counts as waiting, and is bounded.
    place: Option<Place>,
    tries: u32,
    alone: bool,
    /// When the first statement was sent that may have been carried out.
    sent: Option<Instant>,
    /// The owner of a claim whose caller was told that the store did not answer: where the claim was made all the
    /// same, it is given back.
    seeks: Option<Sought>,
}

/// A claim that may have been made.
#[derive(Debug)]
struct Sought {
    owner: String,
    doubtful: bool,
}

/// A bounded place in the queue.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Message {
    Request(Box<Request>),
    Task(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// A handle of the background thread.
#[derive(Debug, Clone)]
pub(crate) struct Service(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    messages: mpsc::UnboundedSender<Message>,
    waiting: Arc<AtomicUsize>,
    live: Arc<Live>,
    limits: Limits,
    process: u32,
}

/// A handle that does not keep the background thread alive.
#[derive(Debug, Clone)]
pub(crate) struct WeakService(Weak<Shared>);

impl WeakService {
    pub(crate) fn upgrade(&self) -> Option<Service> {
        self.0.upgrade().map(Service)
    }
}

/// What an attempt to claim comes to.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The claim is ours.
    Held(Claim),
    /// This row stands in the way.
    Found(Box<Record>),
    /// The expected row is gone.
    Gone,
}

impl Service {
    /// Starts the background thread.
    pub(crate) fn start(store: Arc<dyn Store>, limits: Limits, hook: Hook) -> Result<Self, Error> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Error::Config { message: "cannot start a runtime".into(), source: Some(error.into()) }
            })?;
        let (messages, inbox) = mpsc::unbounded_channel();
        let live = Arc::new(Live::new(limits.overdue_after, hook));
        let shared = Arc::new(Shared {
            store: Arc::clone(&store),
            messages,
            waiting: Arc::default(),
            live: Arc::clone(&live),
            limits,
            process: process::id(),
        });
        thread::Builder::new()
            .name("idem".into())
            .spawn(move || {
                // Leases must not look alive when this thread is gone, however it went.
                let last_words = LoseAll(Arc::clone(&live));
                runtime.block_on(async move {
                    tokio::spawn(Arc::clone(&live).beat(Arc::clone(&store)));
                    queue::serve(store, inbox).await;
                });
                drop(last_words);
            })
            .map_err(|error| Error::Config {
                message: "cannot start the background thread".into(),
                source: Some(error.into()),
            })?;
        Ok(Self(shared))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.0.live
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// A handle that does not keep the thread alive.
    pub(crate) fn downgrade(&self) -> WeakService {
        WeakService(Arc::downgrade(&self.0))
    }

    /// How many signs there were so far that leases could not be renewed.
    pub(crate) fn troubles(&self) -> u64 {
        self.0.live.troubles()
    }

    /// Has a future run on the background thread, for as long as that lives.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        self.send(Message::Task(Box::pin(future)))
    }

    /// Whether two handles lead to the same thread.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Tries to claim an absent key.
    pub(crate) async fn claim(
        &self,
        insert: Insert,
        job: Option<Renew>,
        terms: ClaimTerms,
        patience: Patience,
    ) -> Result<Attempt, Failure> {
        self.attempt(Work::inserting(insert, job), terms, patience).await
    }

    /// Tries to claim a key whose row was seen.
    pub(crate) async fn take(
        &self,
        replace: Replace,
        job: Option<Renew>,
        terms: ClaimTerms,
        patience: Patience,
    ) -> Result<Attempt, Failure> {
        self.attempt(Work::replacing(replace, job), terms, patience).await
    }

    async fn attempt(&self, work: Work, terms: ClaimTerms, patience: Patience) -> Result<Attempt, Failure> {
        match self.call(work, Some(terms), patience, true)?.wait().await? {
            Done::Granted(claim) => Ok(Attempt::Held(claim)),
            Done::Answer(Answer::Found(record)) => Ok(Attempt::Found(record)),
            Done::Answer(Answer::Gone | Answer::Written { .. }) | Done::Read(_) => Ok(Attempt::Gone),
        }
    }

    /// Writes a row where there is none.
    pub(crate) async fn insert(
        &self,
        insert: Insert,
        job: Option<Renew>,
        patience: Patience,
    ) -> Result<Answer, Failure> {
        self.write(Work::inserting(insert, job), patience).await
    }

    /// Writes a row in the place of the one that was seen.
    pub(crate) async fn replace(
        &self,
        replace: Replace,
        job: Option<Renew>,
        patience: Patience,
    ) -> Result<Answer, Failure> {
        self.write(Work::replacing(replace, job), patience).await
    }

    /// Ends an execution. The ending is on its way as soon as this is called, whatever becomes of the future.
    pub(crate) fn finish(
        &self,
        finish: Finish,
        job: Option<Renew>,
        patience: Patience,
    ) -> impl Future<Output = Result<Answer, Failure>> + use<> {
        let work = Work::finishing(finish, job);
        let waiting = self.call(work, None, patience.insisting(), false);
        async { waiting?.wait().await.map(into_answer) }
    }

    /// Ends an execution without waiting for it: for `Drop`.
    pub(crate) fn finish_detached(&self, finish: Finish, lease: &Lease) {
        // Where even this cannot be sent, the lease ends by itself.
        drop(self.call(Work::Finish(finish), None, self.patience_of_an_end(lease), false));
    }

    /// Patience of the end of a claim: until its lease ends, and for a while at least.
    pub(crate) fn patience_of_an_end(&self, lease: &Lease) -> Patience {
        let until = lease.ends().max(Instant::now() + self.limits().store_timeout);
        Patience::new(until, Some(lease.term())).insisting()
    }

    /// Reads a row.
    pub(crate) async fn read(
        &self,
        key: Arc<str>,
        patience: Patience,
    ) -> Result<Option<Box<Record>>, Failure> {
        match self.call(Work::Read(key), None, patience, true)?.wait().await? {
            Done::Read(record) => Ok(record),
            Done::Answer(Answer::Found(record)) => Ok(Some(record)),
            Done::Answer(_) | Done::Granted(_) => Ok(None),
        }
    }

    async fn write(&self, work: Work, patience: Patience) -> Result<Answer, Failure> {
        self.call(work, None, patience, false)?.wait().await.map(into_answer)
    }

    /// Patience of a claim or a look-up.
    pub(crate) fn patience(&self, lease: Option<Duration>) -> Patience {
        Patience::new(Instant::now() + self.limits().store_timeout, lease)
    }

    /// Runs a future to its end, whatever becomes of the caller.
    pub(crate) async fn complete<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.0.store.is_local() { Ok(future.await) } else { self.background(future).await }
    }

    /// Runs a future to its end without waiting for it: for `Drop`.
    pub(crate) fn detach(&self, future: impl Future<Output = ()> + Send + 'static) {
        if self.0.store.is_local() {
            block_on(future);
        } else {
            // Where even this cannot be sent, there is nobody who could do it.
            drop(self.spawn(future));
        }
    }

    /// Runs a future on the background thread, where there is a clock.
    pub(crate) async fn background<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Task(Box::pin(async move {
            let _ = reply.send(future.await);
        })))?;
        answer.await.map_err(|_| Failure::Gone)
    }

    /// Sleeps on the background thread's clock: the caller may have no runtime.
    pub(crate) async fn sleep(&self, duration: Duration) -> Result<(), Failure> {
        self.background(async move { tokio::time::sleep(duration).await }).await
    }

    fn call(
        &self,
        work: Work,
        terms: Option<ClaimTerms>,
        patience: Patience,
        bounded: bool,
    ) -> Result<Waiting, Failure> {
        self.check_alive()?;
        if self.0.store.is_local() {
            return Ok(Waiting::Ready(Box::new(self.call_local(&work, terms)?)));
        }
        let place = if bounded { Some(self.place()?) } else { None };
        let (reply, answer) = oneshot::channel();
        let claims = terms.map(|terms| (self.clone(), terms));
        let request =
            Request { work, claims, patience, reply, place, tries: 0, alone: false, sent: None, seeks: None };
        self.send(Message::Request(Box::new(request)))?;
        Ok(Waiting::Queued(answer))
    }

    /// A store that answers at once is asked here and now.
    fn call_local(&self, work: &Work, terms: Option<ClaimTerms>) -> Result<Done, Failure> {
        let sent = Instant::now();
        let mut answer = std::pin::pin!(perform_alone(&*self.0.store, work));
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Done::Answer(answer))) => {
                work.was_answered(&answer);
                self.check_alive()?;
                Ok(match terms {
                    Some(terms) => self.granted(work, terms, sent, answer),
                    None => Done::Answer(answer),
                })
            }
            Poll::Ready(done) => done.map_err(Failure::Store),
            Poll::Pending => Err(Failure::Gone),
        }
    }

    fn place(&self) -> Result<Place, Failure> {
        let place = Place(Arc::clone(&self.0.waiting));
        let before = self.0.waiting.fetch_add(1, Ordering::Relaxed);
        if before < self.limits().queue { Ok(place) } else { Err(Failure::Full) }
    }

    /// A forked child has the memory of this process and not its thread.
    pub(crate) fn check_alive(&self) -> Result<(), Failure> {
        if process::id() == self.0.process && !is_dead() { Ok(()) } else { Err(Failure::Gone) }
    }

    fn send(&self, message: Message) -> Result<(), Failure> {
        self.check_alive()?;
        self.0.messages.send(message).map_err(|_| Failure::Gone)
    }

    /// Makes a claim of an owner's write.
    fn granted(&self, work: &Work, terms: ClaimTerms, sent: Instant, answer: Answer) -> Done {
        match (answer, work.owner()) {
            (Answer::Written { fence }, Some(owner)) => {
                let key = Arc::clone(work.key());
                let claim = Claim::new(self.clone(), key, owner.to_owned(), fence, terms, sent);
                let job = work.as_phase().map(|write| write.job.clone());
                Done::Granted(claim.under(job).doubted(work.is_doubtful()))
            }
            (answer, _) => Done::Answer(answer),
        }
    }
}

fn into_answer(done: Done) -> Answer {
    match done {
        Done::Answer(answer) => answer,
        Done::Granted(claim) => Answer::Written { fence: claim.fence() },
        Done::Read(record) => record.map_or(Answer::Gone, Answer::Found),
    }
}

/// A request whose answer is awaited.
enum Waiting {
    Queued(oneshot::Receiver<Result<Done, Failure>>),
    Ready(Box<Done>),
}

impl Waiting {
    async fn wait(self) -> Result<Done, Failure> {
        match self {
            Self::Queued(answer) => answer.await.map_err(|_| Failure::Gone)?,
            Self::Ready(done) => Ok(*done),
        }
    }
}

/// Declares all leases lost when the thread ends.
struct LoseAll(Arc<Live>);

impl Drop for LoseAll {
    fn drop(&mut self) {
        self.0.lose_all();
    }
}
