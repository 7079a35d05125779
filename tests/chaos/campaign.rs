//! One run, from the first worker to the report: one thread that hears all news and keeps the times.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use idem_runtime::Idem;
use idem_tests::{Backend, Database, Ledger, child::Parent};
use tokio::runtime;

use crate::{
    bank::Bank,
    book::Book,
    check::{self, Evidence},
    crew::Worker,
    delivery::{Answer, Delivery},
    history::{About, Became, Event, History, Verdict},
    key::Key,
    order,
    person::Person,
    plan::{Ending, Harm, Harms, Restarts},
    queue::Queue,
    report::Report,
    server::Server,
    settings::Settings,
    skew::Skew,
};

const WORKERS: usize = 4;

/// How often there is a new key.
const EVERY: Duration = Duration::from_millis(30);

/// How long nothing may come to an end when nobody is harmed any more, before what is left is wedged.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is heard.
#[derive(Debug)]
pub(crate) enum News {
    /// How many seconds its clock is ahead.
    Ready {
        worker: usize,
        life: u64,
        ahead: i64,
    },
    Answered {
        worker: usize,
        life: u64,
        answer: Answer,
    },
    Died {
        worker: usize,
        life: u64,
    },
    Judged {
        key: Key,
        about: About,
        verdict: Verdict,
        became: Became,
    },
    ServerEnded,
    ServerIsBack,
    ServerFailed(String),
}

/// What is to be done at a time.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Open,
    Deliver(Key),
    /// The delivery may have been in vain.
    Doubt(usize, u64, Key),
    Review(Key),
    Harm(usize, Harm, bool),
    Heal(usize, Harm, bool),
    EndServer(Ending, Duration),
    StartServer,
}

pub(crate) fn run(parent: Parent, settings: Settings) {
    let database = settings.backend.fresh();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ledger = Ledger::new();
    let bank = runtime.block_on(async {
        // Its table is there before anybody works, and a SQLite file comes with its first connection.
        Idem::connect(database.url()).await.expect("a database of one's own");
        let bank = Bank::at(settings.backend, database.url());
        bank.prepare().await.expect("a table");
        bank
    });
    let (history, queue) = Campaign::begin(parent, settings, &database, &ledger).fight();

    let mut book = Book::at(ledger.path().to_owned());
    book.refresh();
    let mut rows: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (job, delivery) in runtime.block_on(bank.rows()).expect("rows to read") {
        rows.entry(job).or_default().push(delivery);
    }
    let unclosed = queue.unclosed().collect();
    let orders = runtime.block_on(order::read(database.url(), &history));
    let evidence = Evidence { history: &history, book: &book, rows: &rows, orders: &orders, unclosed };
    let violations = check::violations(&evidence);
    let report = Report::of(&settings, &evidence, violations.len());
    check::print(&evidence, &violations);
    println!("{report}");
    assert!(violations.is_empty(), "{} violations", violations.len());
    let vacuous = report.vacuous();
    assert!(vacuous.is_empty(), "it proved nothing, for there was no {}", vacuous.join(", no "));
}

struct Campaign {
    news: Receiver<News>,
    workers: Vec<Worker>,
    harms: Vec<Harms>,
    restarts: Restarts,
    server: Server,
    person: Person,
    queue: Queue,
    history: History,
    agenda: BinaryHeap<Reverse<Due>>,
    dues: u64,
    end: Instant,
    peace: bool,
    /// What is being done to somebody now.
    harmed: usize,
    /// When something last came to an end.
    progress: Instant,
}

/// By time, then by age.
#[derive(Debug)]
struct Due(Instant, u64, Deed);

impl Campaign {
    fn begin(parent: Parent, settings: Settings, database: &Database, ledger: &Ledger) -> Campaign {
        let (tell, news): (Sender<News>, _) = mpsc::channel();
        let Settings { backend, seed, length, .. } = settings;
        let skew = Skew::for_workers_of(backend);
        println!("seed {seed} on {backend}; the workers' clocks: {}", skew.describe());
        let ledger = ledger.path().to_owned();
        let worker = |index| Worker::at(database, ledger.clone(), skew.clone(), index, tell.clone());
        let mut campaign = Campaign {
            news,
            workers: (0..WORKERS).map(worker).collect(),
            harms: (0..WORKERS).map(|worker| Harms::of(seed, worker, backend)).collect(),
            restarts: Restarts::of(seed, backend),
            server: Server::kept_by(parent, tell.clone()),
            person: Person::at(database.url().to_owned(), seed, ledger.clone(), tell),
            queue: Queue::new(seed, backend),
            history: History::begin(),
            agenda: BinaryHeap::new(),
            dues: 0,
            end: Instant::now() + length,
            peace: false,
            harmed: 0,
            progress: Instant::now(),
        };
        for worker in 0..WORKERS {
            campaign.start(worker);
            campaign.plan_harm(worker);
        }
        if backend != Backend::Sqlite {
            campaign.plan_restart();
        }
        campaign.plan(Duration::ZERO, Deed::Open);
        campaign
    }

    fn fight(mut self) -> (History, Queue) {
        while !(self.peace && self.queue.is_done()) {
            if self.peace && self.progress.elapsed() > PATIENCE {
                break;
            }
            if !self.peace && self.harmed == 0 && Instant::now() > self.end {
                self.make_peace();
            }
            self.deliver_what_is_due();
            let next = self.agenda.peek().map(|Reverse(Due(at, ..))| *at);
            let wait = next.map_or(Duration::from_millis(100), |at| {
                at.saturating_duration_since(Instant::now()).min(Duration::from_millis(100))
            });
            match self.news.recv_timeout(wait) {
                Ok(news) => self.hear(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the workers hold a sender"),
            }
            while let Ok(news) = self.news.try_recv() {
                self.hear(news);
            }
            while self.agenda.peek().is_some_and(|Reverse(Due(at, ..))| *at <= Instant::now()) {
                if let Some(Reverse(Due(.., deed))) = self.agenda.pop() {
                    self.act(deed);
                }
            }
        }
        (self.history, self.queue)
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Ready { worker, life, ahead } if self.workers[worker].is_living(life) => {
                self.workers[worker].is_ready();
                self.history.note(Event::Ready { worker, ahead });
            }
            News::Answered { worker, life, answer } if self.workers[worker].is_living(life) => {
                self.answered(worker, answer);
            }
            News::Died { worker, life } if self.workers[worker].is_living(life) => {
                for (delivery, key) in self.workers[worker].bury() {
                    self.history.note(Event::Unanswered { key, delivery });
                    let pause = self.queue.unanswered(key);
                    self.plan(pause, Deed::Deliver(key));
                }
                self.start(worker);
            }
            // Of a process that is dead, or of what was asked for and has nothing to follow.
            News::Ready { .. } | News::Answered { .. } | News::Died { .. } | News::ServerEnded => {}
            News::Judged { key, about, verdict, became } => {
                self.history.note(Event::Judged { key, about, verdict, became });
            }
            News::ServerIsBack => {
                self.history.note(Event::ServerIsBack);
                self.harmed -= 1;
                self.plan_restart();
            }
            News::ServerFailed(why) => panic!("the server: {why}"),
        }
    }

    fn answered(&mut self, worker: usize, Answer { delivery, end }: Answer) {
        let key = self.workers[worker].answered(delivery).expect("an answer to a delivery");
        let then = self.queue.answered(key, delivery, &end, self.peace);
        if end.is_done() {
            self.progress = Instant::now();
        }
        self.history.note(Event::Answered { key, delivery, end });
        if let Some(pause) = then.deliver_in {
            self.plan(pause, Deed::Deliver(key));
        }
        if let Some(pause) = then.review_in {
            self.plan(pause, Deed::Review(key));
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Open => {
                if Instant::now() < self.end {
                    self.queue.open();
                    self.plan(EVERY, Deed::Open);
                }
            }
            Deed::Deliver(key) => self.queue.is_due(key),
            Deed::Doubt(worker, delivery, key) => {
                if self.workers[worker].holds(delivery) {
                    self.queue.is_due(key);
                }
            }
            Deed::Review(key) => self.person.ask(key),
            Deed::Harm(worker, harm, death) => {
                if Instant::now() > self.end {
                    return;
                }
                let pid = self.workers[worker].pid();
                self.history.note(Event::Harmed { worker, pid, harm });
                self.workers[worker].harm(harm);
                match harm.lasts() {
                    Some(lasts) => {
                        self.harmed += 1;
                        self.plan(lasts, Deed::Heal(worker, harm, death));
                    }
                    None => self.plan_harm(worker),
                }
            }
            Deed::Heal(worker, harm, death) => {
                self.harmed -= 1;
                let pid = self.workers[worker].pid();
                if death {
                    self.history.note(Event::Harmed { worker, pid, harm: Harm::Kill });
                    self.workers[worker].kill();
                } else {
                    self.history.note(Event::Healed { worker, pid });
                }
                self.workers[worker].heal(harm);
                self.plan_harm(worker);
            }
            Deed::EndServer(ending, away) => {
                if Instant::now() < self.end {
                    self.harmed += 1;
                    self.history.note(Event::ServerEnds(ending));
                    self.server.end(ending);
                    self.plan(away, Deed::StartServer);
                }
            }
            Deed::StartServer => self.server.start(),
        }
    }

    fn deliver_what_is_due(&mut self) {
        loop {
            let free: Vec<usize> = (0..WORKERS).filter(|worker| self.workers[*worker].room() > 0).collect();
            let Some(worker) = self.queue.another_worker(&free) else { return };
            let Some((delivery, twice)) = self.queue.take(self.peace) else { return };
            self.deliver(worker, &delivery);
            let others: Vec<usize> = free.into_iter().filter(|other| *other != worker).collect();
            if twice && let Some(other) = self.queue.another_worker(&others) {
                let copy = self.queue.delivery(delivery.key, self.peace);
                self.deliver(other, &copy);
            }
        }
    }

    fn deliver(&mut self, worker: usize, delivery: &Delivery) {
        let pid = self.workers[worker].pid();
        self.history.note(Event::Sent { delivery: *delivery, worker, pid });
        self.workers[worker].deliver(delivery);
        let patience = self.queue.patience();
        self.plan(patience, Deed::Doubt(worker, delivery.id, delivery.key));
    }

    fn make_peace(&mut self) {
        self.peace = true;
        self.progress = Instant::now();
        self.history.note(Event::Peace);
        self.queue.once_more();
    }

    fn start(&mut self, worker: usize) {
        let pid = self.workers[worker].start();
        self.history.note(Event::Started { worker, pid });
    }

    fn plan(&mut self, after: Duration, deed: Deed) {
        self.dues += 1;
        self.agenda.push(Reverse(Due(Instant::now() + after, self.dues, deed)));
    }

    fn plan_harm(&mut self, worker: usize) {
        let mishap = self.harms[worker].next();
        self.plan(mishap.pause, Deed::Harm(worker, mishap.harm, mishap.death));
    }

    fn plan_restart(&mut self) {
        let (pause, ending, away) = self.restarts.next();
        self.plan(pause, Deed::EndServer(ending, away));
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}
