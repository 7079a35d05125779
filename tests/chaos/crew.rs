//! The worker processes, each with a way to the database of its own, and what is done to them.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    thread,
};

use idem_tests::{Database, Proxy, child};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    campaign::News,
    clock,
    delivery::Delivery,
    key::Key,
    plan::Harm,
    skew::Skew,
    worker::{LEDGER, READY, RETIRE, URL},
};

/// How many deliveries a worker takes at once.
const HANDS: usize = 12;

/// One worker: a process, and the next one when it died.
#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    url: String,
    ledger: PathBuf,
    skew: Skew,
    proxy: Option<Proxy>,
    news: Sender<News>,
    process: Option<Process>,
    /// How many processes it had.
    life: u64,
    ready: bool,
    /// It was killed, or told to end.
    leaves: bool,
    in_flight: BTreeMap<u64, Key>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    stdin: ChildStdin,
    complaints: Arc<Mutex<VecDeque<String>>>,
}

impl Worker {
    pub(crate) fn at(
        database: &Database,
        ledger: PathBuf,
        skew: Skew,
        index: usize,
        news: Sender<News>,
    ) -> Worker {
        let proxy = database.address().map(Proxy::to);
        let through = proxy.as_ref().and_then(|proxy| database.url_through(proxy.address()));
        Worker {
            index,
            url: through.unwrap_or_else(|| database.url().to_owned()),
            ledger,
            skew,
            proxy,
            news,
            process: None,
            life: 0,
            ready: false,
            leaves: false,
            in_flight: BTreeMap::new(),
        }
    }

    /// Starts a process; its number.
    pub(crate) fn start(&mut self) -> u32 {
        let mut command = child::test("worker");
        command.env(URL, &self.url).env(LEDGER, &self.ledger);
        self.skew.set(&mut command, self.index);
        self.life += 1;
        (self.ready, self.leaves) = (false, false);
        let process = Process::spawn(&mut command, self.index, self.life, &self.news);
        let pid = process.child.id();
        self.process = Some(process);
        pid
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, |process| process.child.id())
    }

    /// Whether this is about the process that it has now.
    pub(crate) fn is_living(&self, life: u64) -> bool {
        self.life == life
    }

    pub(crate) fn is_ready(&mut self) {
        self.ready = true;
    }

    /// How many more deliveries it takes. One that is frozen or cut off takes them as any other.
    pub(crate) fn room(&self) -> usize {
        if self.ready && !self.leaves { HANDS.saturating_sub(self.in_flight.len()) } else { 0 }
    }

    pub(crate) fn deliver(&mut self, delivery: &Delivery) {
        self.in_flight.insert(delivery.id, delivery.key);
        self.write(&serde_json::to_string(delivery).expect("plain data"));
    }

    /// The key of a delivery that was answered.
    pub(crate) fn answered(&mut self, delivery: u64) -> Option<Key> {
        self.in_flight.remove(&delivery)
    }

    pub(crate) fn holds(&self, delivery: u64) -> bool {
        self.in_flight.contains_key(&delivery)
    }

    /// Nobody answers these any more.
    pub(crate) fn bury(&mut self) -> BTreeMap<u64, Key> {
        if let Some(mut process) = self.process.take() {
            let status = process.child.wait().expect("a child of ours");
            let (index, complaints) = (self.index, process.complaints());
            assert!(self.leaves, "worker {index} ended by itself: {status}\n{complaints}");
        }
        std::mem::take(&mut self.in_flight)
    }

    pub(crate) fn harm(&mut self, harm: Harm) {
        match (harm, &self.proxy) {
            (Harm::Kill, _) => self.kill(),
            (Harm::Retire, _) => self.retire(),
            (Harm::Stop(_), _) => self.signal(Signal::STOP),
            (_, None) => {}
            (Harm::Cut, Some(proxy)) => proxy.cut(),
            (Harm::Silence(_), Some(proxy)) => proxy.blackhole(),
            (Harm::Swallow(_), Some(proxy)) => proxy.swallow_replies(),
            (Harm::Refuse(_), Some(proxy)) => proxy.refuse(),
            (Harm::Delay(latency, _), Some(proxy)) => proxy.delay(std::time::Duration::from_millis(latency)),
        }
    }

    pub(crate) fn heal(&mut self, harm: Harm) {
        match (harm, &self.proxy) {
            (Harm::Stop(_), _) => self.signal(Signal::CONT),
            // A connection that lost a part of what it was sent is none any more, and nothing may pass before it ends.
            (Harm::Swallow(_), Some(proxy)) => {
                proxy.blackhole();
                proxy.cut();
                proxy.forward();
            }
            (Harm::Silence(ms), Some(proxy)) => {
                if ms % 2 == 0 {
                    proxy.cut();
                }
                proxy.forward();
            }
            (Harm::Refuse(_) | Harm::Delay(..), Some(proxy)) => proxy.forward(),
            (Harm::Kill | Harm::Retire | Harm::Cut, _) | (_, None) => {}
        }
    }

    /// It is gone when its end is in the news.
    pub(crate) fn kill(&mut self) {
        self.leaves = true;
        if let Some(process) = &mut self.process {
            process.child.kill().expect("a child of ours");
            process.child.wait().expect("a child of ours");
        }
    }

    /// It ends when it has shut down.
    fn retire(&mut self) {
        if self.ready {
            self.leaves = true;
            self.write(RETIRE);
        }
    }

    fn write(&mut self, line: &str) {
        if let Some(Process { stdin, .. }) = &mut self.process {
            // One that has died is heard of in another way.
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process.as_ref().filter(|_| !self.leaves) {
            kill_process(Pid::from_child(&process.child), signal).expect("a child of ours");
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    fn spawn(command: &mut Command, worker: usize, life: u64, news: &Sender<News>) -> Process {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("a child process");
        let stdin = child.stdin.take().expect("piped");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let news = news.clone();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Some(message) = child::message(&line) else { continue };
                let told = if let Some(time) = message.strip_prefix(READY) {
                    let time: i64 = time.trim().parse().expect("a time");
                    News::Ready { worker, life, ahead: time - clock::of_day() }
                } else {
                    let answer = serde_json::from_str(message).expect("an answer");
                    News::Answered { worker, life, answer }
                };
                // At the end nobody listens any more.
                let _ = news.send(told);
            }
            let _ = news.send(News::Died { worker, life });
        });
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&complaints);
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(line);
                if kept.len() > 50 {
                    kept.pop_front();
                }
            }
        });
        Process { child, stdin, complaints }
    }

    fn complaints(&self) -> String {
        let kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().fold(String::new(), |text, line| text + line + "\n")
    }
}
