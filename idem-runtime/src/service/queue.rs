//! The queue: requests wait here for a free writer, and all that wait for the same kind of statement share one.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    hash::{BuildHasher, RandomState},
    pin::Pin,
    sync::Arc,
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinError, JoinSet},
    time::Sleep,
};

use super::{
    Done, Failure, Message, Patience, Request, Sought, within,
    work::{Work, perform_alone},
};
use crate::{
    claim::Claim,
    record::{Record, Status},
    store::{Answer, ErrorClass, Finish, Insert, PhaseWrite, Store, StoreError},
};

/// The most items that one statement carries.
const LARGEST_BATCH: usize = 256;
/// How many writes must wait for a second statement to go out beside the first. Below that one larger statement does
/// better: a database makes commits durable one after the other.
const SECOND_WRITER_AT: usize = 64;
/// How long a statement is under way before another one goes out beside it all the same: it waits for a lock, or for a
/// connection that is dead.
const SLOW_WRITE: Duration = Duration::from_millis(25);
/// After a batch of several, and with nothing under way, how long the next one gathers. A lone caller never waits.
const GATHERING: Duration = Duration::from_micros(20);
/// The pause before the first repetition; it doubles up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The kinds of statement. Requests of one kind can share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finish,
    Insert,
    Replace,
    Phase,
    Read,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Finish, Self::Insert, Self::Replace, Self::Phase, Self::Read];

    fn of(work: &Work) -> Self {
        match work {
            Work::Finish(_) => Self::Finish,
            Work::Insert(_) => Self::Insert,
            Work::Replace(_) => Self::Replace,
            Work::Phase(_) => Self::Phase,
            Work::Read(_) => Self::Read,
        }
    }

    fn is_write(self) -> bool {
        self != Self::Read
    }

    fn largest_batch(self) -> usize {
        if self == Self::Replace { 1 } else { LARGEST_BATCH }
    }
}

/// A batch that came back from the store.
struct Batch {
    kind: Kind,
    requests: Vec<Request>,
    sent: Instant,
    outcome: Result<Vec<Done>, StoreError>,
}

/// What happens next.
enum Event {
    Batch(Result<Batch, JoinError>),
    Messages(usize),
    PauseOver,
}

struct Queue {
    store: Arc<dyn Store>,
    /// Requests that can go out, by kind; at most one for each key.
    ready: [VecDeque<Request>; Kind::ALL.len()],
    /// For each key that has a request in `ready` or under way: those that wait behind it, in order.
    behind: HashMap<Arc<str>, VecDeque<Request>>,
    /// Requests that are tried again later.
    paused: Vec<(Instant, Request)>,
    under_way: JoinSet<Batch>,
    writes: usize,
    /// When the last write went out.
    wrote_at: Instant,
    reads: usize,
    /// The kind that is looked at first; it moves on, so that none starves.
    first: usize,
    chance: RandomState,
}

/// Serves requests until every handle is gone and everything is answered.
pub(super) async fn serve(store: Arc<dyn Store>, mut inbox: mpsc::UnboundedReceiver<Message>) {
    let mut queue = Queue::new(store);
    let mut messages = Vec::new();
    let mut open = true;
    while open || !queue.is_empty() {
        queue.dispatch();
        match queue.next(&mut inbox, &mut messages, open).await {
            Event::Batch(Ok(batch)) => {
                let is_shared = batch.requests.len() > 1;
                queue.settle(batch);
                if is_shared && queue.under_way.is_empty() {
                    // Those who were just answered come back together. Neither the runtime's clock, which counts
                    // milliseconds, nor spinning, which takes the core that they need, can wait for them.
                    thread::sleep(GATHERING);
                    while let Ok(message) = inbox.try_recv() {
                        queue.take_in(message);
                    }
                }
            }
            Event::Batch(Err(error)) => {
                tracing::error!(%error, "the background service failed; its leases count as lost");
                return;
            }
            Event::Messages(0) => open = false,
            Event::Messages(_) => {
                messages.drain(..).for_each(|message| queue.take_in(message));
            }
            Event::PauseOver => queue.resume(Instant::now()),
        }
    }
}

impl Queue {
    fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            ready: Default::default(),
            behind: HashMap::new(),
            paused: Vec::new(),
            under_way: JoinSet::new(),
            writes: 0,
            wrote_at: Instant::now(),
            reads: 0,
            first: 0,
            chance: RandomState::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.behind.is_empty() && self.paused.is_empty()
    }

    async fn next(
        &mut self,
        inbox: &mut mpsc::UnboundedReceiver<Message>,
        messages: &mut Vec<Message>,
        open: bool,
    ) -> Event {
        let mut pause: Option<Pin<Box<Sleep>>> =
            self.wakes().map(|until| Box::pin(tokio::time::sleep_until(until.into())));
        poll_fn(|cx| {
            if let Poll::Ready(Some(batch)) = self.under_way.poll_join_next(cx) {
                return Poll::Ready(Event::Batch(batch));
            }
            if open && let Poll::Ready(count) = inbox.poll_recv_many(cx, messages, 4 * LARGEST_BATCH) {
                return Poll::Ready(Event::Messages(count));
            }
            match &mut pause {
                Some(pause) => pause.as_mut().poll(cx).map(|()| Event::PauseOver),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn take_in(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.accept(*request),
            Message::Task(task) => drop(tokio::spawn(task)),
        }
    }

    /// Takes a request in: to the front if its key is free, behind the others of its key if not.
    fn accept(&mut self, request: Request) {
        if let Some(others) = self.behind.get_mut(request.work.key()) {
            others.push_back(request);
        } else {
            self.behind.insert(Arc::clone(request.work.key()), VecDeque::new());
            self.enqueue(request);
        }
    }

    fn enqueue(&mut self, request: Request) {
        self.ready[Kind::of(&request.work) as usize].push_back(request);
    }

    /// Lets the next request of a key come to the front.
    fn release(&mut self, key: &Arc<str>) {
        match self.behind.get_mut(key).map(VecDeque::pop_front) {
            Some(Some(next)) => self.enqueue(next),
            Some(None) => drop(self.behind.remove(key)),
            None => {}
        }
    }

    fn resume(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.paused).into_iter().partition(|(until, _)| *until <= now);
        self.paused = later;
        for (_, request) in due {
            self.accept(request);
        }
    }

    /// Sends what can be sent.
    fn dispatch(&mut self) {
        let first = self.first;
        for step in 0..Kind::ALL.len() {
            let kind = Kind::ALL[(first + step) % Kind::ALL.len()];
            while self.has_room(kind) {
                let requests = self.take(kind);
                if requests.is_empty() {
                    break;
                }
                self.send(kind, requests);
            }
        }
    }

    fn has_room(&self, kind: Kind) -> bool {
        let writers = self.store.writers();
        if kind.is_write() {
            let is_worth_it =
                || self.waiting_writes() >= SECOND_WRITER_AT || self.wrote_at.elapsed() >= SLOW_WRITE;
            self.writes == 0 || (self.writes < writers && is_worth_it())
        } else {
            self.reads < writers.max(1)
        }
    }

    fn waiting_writes(&self) -> usize {
        let ready = self.ready.iter().zip(Kind::ALL);
        ready.filter(|(_, kind)| kind.is_write()).map(|(ready, _)| ready.len()).sum()
    }

    /// When there is something to do though nothing comes in or back.
    fn wakes(&self) -> Option<Instant> {
        let paused = self.paused.iter().map(|(until, _)| *until).min();
        let slow = (0 < self.writes && self.writes < self.store.writers() && self.waiting_writes() > 0)
            .then(|| self.wrote_at + SLOW_WRITE);
        paused.into_iter().chain(slow).min()
    }

    /// The next batch of a kind. Callers that are gone claim nothing.
    fn take(&mut self, kind: Kind) -> Vec<Request> {
        let mut requests: Vec<Request> = Vec::new();
        while requests.len() < kind.largest_batch() {
            let Some(request) = self.ready[kind as usize].pop_front() else { break };
            if request.is_abandoned() {
                let key = Arc::clone(request.work.key());
                drop(request);
                self.release(&key);
            } else if request.alone && !requests.is_empty() {
                self.ready[kind as usize].push_front(request);
                break;
            } else {
                let alone = request.alone;
                requests.push(request);
                if alone {
                    break;
                }
            }
        }
        // Every process takes the rows of a batch in the same order, so that two batches cannot wait for each other.
        requests.sort_unstable_by(|a, b| a.work.key().cmp(b.work.key()));
        requests
    }

    fn send(&mut self, kind: Kind, mut requests: Vec<Request>) {
        self.first = (kind as usize + 1) % Kind::ALL.len();
        let now = Instant::now();
        if kind.is_write() {
            self.writes += 1;
            self.wrote_at = now;
        } else {
            self.reads += 1;
        }
        for request in &mut requests {
            request.sent.get_or_insert(now);
        }
        let store = Arc::clone(&self.store);
        self.under_way.spawn(async move {
            let limit = requests.iter().map(|request| request.patience.statement).min().unwrap_or_default();
            let outcome =
                within(limit, "waiting for the database", perform(&*store, kind, &mut requests)).await;
            Batch { kind, requests, sent: now, outcome }
        });
    }

    /// Hands out the answers of a batch, or arranges that it is tried again.
    fn settle(&mut self, batch: Batch) {
        *(if batch.kind.is_write() { &mut self.writes } else { &mut self.reads }) -= 1;
        let keys: Vec<Arc<str>> =
            batch.requests.iter().map(|request| Arc::clone(request.work.key())).collect();
        match batch.outcome {
            Ok(answers) => {
                for (request, done) in batch.requests.into_iter().zip(answers) {
                    if let Done::Answer(answer) = &done {
                        request.work.was_answered(answer);
                    }
                    let key = Arc::clone(request.work.key());
                    if let Done::Answer(Answer::Found(record)) = &done {
                        self.share(&key, record);
                    }
                    if let Some(claim) = request.answer(done) {
                        self.take_back(claim);
                    }
                }
            }
            Err(error) => self.again(batch.requests, batch.sent, &error),
        }
        for key in &keys {
            self.release(key);
        }
    }

    /// Answers those that wait behind a claim with the row that it met: they came before the answer did. One that was
    /// sent before may have made that row itself, and asks on its own.
    fn share(&mut self, key: &Arc<str>, record: &Record) {
        let Some(others) = self.behind.get_mut(key) else { return };
        while others.front().is_some_and(|request| {
            request.sent.is_none() && matches!(request.work, Work::Insert(_) | Work::Read(_))
        }) {
            if let Some(request) = others.pop_front() {
                // A row that was found grants nothing.
                let _ = request.answer(Done::Answer(Answer::Found(Box::new(record.clone()))));
            }
        }
    }

    /// Gives a claim back whose caller is gone, before anybody who waits behind it looks at the key.
    fn take_back(&mut self, claim: Claim) {
        let (service, finish, lease) = claim.withdraw();
        let request = Request::unheard(finish, service.patience_of_an_end(&lease));
        self.behind.entry(Arc::clone(request.work.key())).or_default().push_front(request);
    }

    fn again(&mut self, requests: Vec<Request>, sent: Instant, error: &StoreError) {
        let now = Instant::now();
        let shared = requests.len() > 1 && error.class != ErrorClass::Transient;
        for mut request in requests {
            if error.class == ErrorClass::Locked && request.sent == Some(sent) {
                // Nothing was written, so no lease has begun; an earlier sending may have been carried out.
                request.sent = None;
            }
            if shared {
                // One item's trouble is not its mates': each is tried by itself.
                request.alone = true;
                self.paused.push((now, request));
            } else if request.gives_up(error, now) {
                let error = StoreError::new(error.class, error.context, error.source.to_string());
                self.paused.extend(request.refuse(error).map(|search| (now + SHORTEST_PAUSE, search)));
            } else {
                let pause =
                    self.pause(request.tries).min(request.patience.until.saturating_duration_since(now));
                tracing::debug!(%error, tries = request.tries, "the store did not do it; trying again");
                request.tries += 1;
                self.paused.push((now + pause, request));
            }
        }
    }

    /// Doubles with every try, and is spread by chance, so that those who met do not meet again.
    fn pause(&self, tries: u32) -> Duration {
        let pause = SHORTEST_PAUSE.saturating_mul(1 << tries.min(10)).min(LONGEST_PAUSE);
        let spread = u32::try_from(self.chance.hash_one(Instant::now()) % 64).unwrap_or(0);
        pause / 2 + pause * spread / 128
    }
}

impl Request {
    /// An ending that nobody waits for.
    fn unheard(finish: Finish, patience: Patience) -> Self {
        let (reply, _) = oneshot::channel();
        let work = Work::Finish(finish);
        Self {
            work,
            claims: None,
            patience,
            reply,
            place: None,
            tries: 0,
            alone: false,
            sent: None,
            seeks: None,
        }
    }

    /// Whether nobody waits for this request and it has not begun anything.
    fn is_abandoned(&self) -> bool {
        self.place.is_some() && self.sent.is_none() && self.seeks.is_none() && self.reply.is_closed()
    }

    fn gives_up(&self, error: &StoreError, now: Instant) -> bool {
        now >= self.patience.until || (error.class == ErrorClass::Permanent && !self.patience.insist)
    }

    /// Hands the answer over; a claim whose caller is gone comes back.
    #[must_use]
    fn answer(self, done: Done) -> Option<Claim> {
        if let Some(sought) = &self.seeks {
            return self.found(sought, done);
        }
        let done = match (done, &self.claims) {
            (Done::Answer(answer), Some((service, terms))) => {
                service.granted(&self.work, *terms, self.sent.unwrap_or_else(Instant::now), answer)
            }
            (done, _) => done,
        };
        match self.reply.send(Ok(done)) {
            Err(Ok(Done::Granted(claim))) => Some(claim),
            _ => None,
        }
    }

    /// The claim that was sought, where it was made after all.
    fn found(&self, Sought { owner, doubtful }: &Sought, done: Done) -> Option<Claim> {
        let (Done::Read(Some(record)) | Done::Answer(Answer::Found(record))) = done else { return None };
        let (service, terms) = self.claims.as_ref()?;
        let made = record.status == Status::Processing && record.owner.as_ref() == Some(owner);
        let sent = self.sent.unwrap_or_else(Instant::now);
        let key = Arc::clone(self.work.key());
        let claim = || Claim::new(service.clone(), key, owner.clone(), record.fence, *terms, sent);
        made.then(|| claim().doubted(*doubtful))
    }

    /// Tells the caller that it came to nothing. Where the store may have made a claim all the same, what is left is
    /// the search for it, for as long as the claim would count.
    fn refuse(self, error: StoreError) -> Option<Self> {
        let _ = self.reply.send(Err(Failure::Store(error)));
        let (_, terms) = self.claims.as_ref()?;
        let patience = Patience { until: self.sent? + terms.lease, insist: false, ..self.patience };
        let doubtful = self.work.is_doubtful();
        let seeks = Some(Sought { owner: self.work.owner()?.to_owned(), doubtful });
        let (reply, _) = oneshot::channel();
        let work = Work::Read(Arc::clone(self.work.key()));
        Some(Self { work, patience, reply, tries: 0, alone: false, sent: None, seeks, ..self })
    }
}

/// One statement for all.
async fn perform(store: &dyn Store, kind: Kind, requests: &mut [Request]) -> Result<Vec<Done>, StoreError> {
    if let [request] = requests {
        return Ok(vec![perform_alone(store, &request.work).await?]);
    }
    let answers: Vec<Done> = match kind {
        Kind::Insert => {
            let batch: Vec<Insert> =
                requests.iter().filter_map(|request| request.work.as_insert().cloned()).collect();
            store.insert(&batch).await?.into_iter().map(Done::Answer).collect()
        }
        Kind::Finish => {
            let batch: Vec<Finish> =
                requests.iter().filter_map(|request| request.work.as_finish().cloned()).collect();
            store.finish(&batch).await?.into_iter().map(Done::Answer).collect()
        }
        Kind::Phase => {
            let batch: Vec<PhaseWrite> =
                requests.iter().filter_map(|request| request.work.as_phase().cloned()).collect();
            store.phase(&batch).await?.into_iter().map(Done::Answer).collect()
        }
        Kind::Read => {
            let keys: Vec<Arc<str>> = requests.iter().map(|request| Arc::clone(request.work.key())).collect();
            store.read(&keys).await?.into_iter().map(|record| Done::Read(record.map(Box::new))).collect()
        }
        Kind::Replace => {
            let mut answers = Vec::with_capacity(requests.len());
            for request in requests.iter() {
                answers.push(perform_alone(store, &request.work).await?);
            }
            answers
        }
    };
    if answers.len() == requests.len() {
        Ok(answers)
    } else {
        Err(StoreError::new(
            ErrorClass::Permanent,
            "reading the answers",
            "the store did not answer every request",
        ))
    }
}
