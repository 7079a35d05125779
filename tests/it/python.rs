//! Workers that know nothing of us, in another language and with a driver of its own, beside ours on the same keys.
//! They follow the two patterns of `docs/schema.md`, whose statements they read there.

use std::{
    collections::{BTreeSet, VecDeque},
    env,
    path::Path,
    process::Command,
};

use idem_runtime::{Idem, Outcome, idempotent, with_outcome};
use idem_tests::{
    Backend, Child, Database,
    child::{self, Parent},
};
use sqlx::{Connection, PgConnection, Postgres, Row, Transaction};

use crate::cases::call::Fault;

const URL: &str = "IDEM_TEST_URL";
const MODE: &str = "IDEM_TEST_MODE";

/// How many keys all workers deliver at the same time.
const KEYS: u32 = 500;

/// How far apart a worker delivers one key and the next, so that each has an order of its own.
const STEPS: [u32; 3] = [7, 11, 13];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_first_and_lock_first_share_500_keys() {
    play("insert first", "lock_first").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_first_and_transactional_share_500_keys() {
    play("insert first", "transactional").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_transaction_and_lock_first_share_500_keys() {
    play("one transaction", "lock_first").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_transaction_and_transactional_share_500_keys() {
    play("one transaction", "transactional").await;
}

/// Three processes of each kind.
async fn play(pattern: &str, mode: &str) {
    let python = env::var("IDEM_TEST_PYTHON").unwrap_or_default();
    if python.is_empty() || !Backend::Postgres.available() {
        eprintln!(
            "python or postgres is missing here: `cargo xtask test` finds the one and starts the other"
        );
        return;
    }
    let database = Backend::Postgres.fresh();
    Idem::connect(database.url()).await.expect("the table of keys");
    let mut hand = PgConnection::connect(database.url()).await.expect("a connection");
    // Nothing here keeps an effect from being made twice.
    let effects = "CREATE TABLE effects (key text NOT NULL, worker text NOT NULL)";
    sqlx::raw_sql(effects).execute(&mut hand).await.expect("a table");

    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut foreign = Command::new(python);
    foreign.arg(tests.join("python/worker.py")).arg(pattern);
    foreign.env("IDEM_TEST_SCHEMA", tests.join("../docs/schema.md"));
    let mut theirs = STEPS.map(|_| ready(&database, &mut foreign));
    let mut ours = STEPS.map(|_| ready(&database, child::test("python::ours").env(MODE, mode)));

    honour(&mut ours[0], &mut theirs[0], 1_000);
    honour(&mut theirs[1], &mut ours[1], 2_000);
    share(ours.iter_mut().chain(&mut theirs));

    let counted = "SELECT count(*), count(DISTINCT key), count(DISTINCT worker) FROM effects";
    let effects = sqlx::raw_sql(counted).fetch_one(&mut hand).await.expect("a count");
    let effects: [i64; 3] = [0, 1, 2].map(|column| effects.get(column));
    assert_eq!(effects, [580, 580, 2], "one for each key, by both kinds");
    let counted = "SELECT count(*), count(*) FILTER (WHERE status = 'completed') FROM idempotency_keys";
    let keys = sqlx::raw_sql(counted).fetch_one(&mut hand).await.expect("a count");
    assert_eq!([keys.get::<i64, _>(0), keys.get(1)], [580, 580]);
}

fn ready(database: &Database, command: &mut Command) -> Child {
    let mut child = Child::spawn(command.env(URL, database.url()));
    child.expect("ready");
    child
}

/// What one kind of worker has done is done for the other, and what it gives back is free for the other.
fn honour(one: &mut Child, other: &mut Child, from: u32) {
    let told = |one: &mut Child, line: String| {
        one.say(&line);
        one.expect("done")
    };
    let (middle, end) = (from + 20, from + 40);
    // No key's number leaves 10 when it is divided by ten: no work fails.
    assert_eq!(told(one, format!("deliver {from} {middle} 1 10")), "20 0");
    assert_eq!(told(other, format!("deliver {from} {middle} 1 10")), "0 20");
    assert_eq!(told(one, format!("fail {middle} {end} 1 10")), "20");
    assert_eq!(told(other, format!("deliver {middle} {end} 1 10")), "20 0");
    assert_eq!(told(one, format!("deliver {middle} {end} 1 10")), "0 20");
}

/// All deliver every key at the same time, and with each some of the work fails.
fn share<'a>(workers: impl Iterator<Item = &'a mut Child>) {
    let mut workers: Vec<_> = workers.collect();
    for (n, worker) in workers.iter_mut().enumerate() {
        worker.say(&format!("deliver 0 {KEYS} {} {n}", STEPS[n % STEPS.len()]));
    }
    let mut ran = 0;
    for worker in workers {
        let done = worker.expect("done");
        let (here, elsewhere) = done.split_once(' ').expect("two numbers");
        let [here, elsewhere]: [u32; 2] = [here, elsewhere].map(|count| count.parse().expect("a number"));
        assert_eq!(here + elsewhere, KEYS);
        ran += here;
    }
    assert_eq!(ran, KEYS);
}

/// One of ours, with a connection of its own for what it does.
struct Clerk {
    idem: Idem,
    mode: String,
    hand: PgConnection,
}

impl Clerk {
    async fn deliver(&mut self, number: u32, fails: bool) -> (Result<(), Fault>, Option<Outcome>) {
        let Clerk { idem, mode, hand } = self;
        if mode == "lock_first" {
            return with_outcome(work(idem, hand, number, fails)).await;
        }
        let mut tx = hand.begin().await.expect("a transaction");
        let (result, outcome) = with_outcome(book(idem, &mut tx, number, fails)).await;
        match &result {
            Ok(()) => tx.commit().await.expect("a commit"),
            Err(_) => tx.rollback().await.expect("a rollback"),
        }
        (result, outcome)
    }
}

#[idempotent(key = "foreign:<number>", on_error = "release", idem = idem)]
async fn work(idem: &Idem, hand: &mut PgConnection, number: u32, fails: bool) -> Result<(), Fault> {
    // Before the effect, which is there to stay.
    if fails {
        return Err(Fault::own("not now"));
    }
    effect(hand, number).await
}

#[idempotent(key = "foreign:<number>", mode = "transactional", allow_overlap(work), idem = idem)]
async fn book(
    idem: &Idem,
    tx: &mut Transaction<'_, Postgres>,
    number: u32,
    fails: bool,
) -> Result<(), Fault> {
    effect(tx, number).await?;
    if fails { Err(Fault::own("not now")) } else { Ok(()) }
}

async fn effect(connection: &mut PgConnection, number: u32) -> Result<(), Fault> {
    let effect = sqlx::query("INSERT INTO effects (key, worker) VALUES ($1, 'ours')");
    effect.bind(format!("foreign:{number}")).execute(connection).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn ours() {
    let Some(parent) = Parent::attach() else { return };
    let url = env::var(URL).expect("set by the parent");
    let idem = Idem::connect(&url).await.expect("the parent's database");
    let mode = env::var(MODE).expect("set by the parent");
    let hand = PgConnection::connect(&url).await.expect("a connection");
    let mut clerk = Clerk { idem, mode, hand };
    parent.say("ready");
    loop {
        let line = parent.hear();
        let (verb, numbers) = line.split_once(' ').expect("a verb");
        let numbers: Vec<u32> = numbers.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [first, end, step, failing] = numbers[..] else { panic!("{line}") };
        let keys = (0..end - first).map(|turn| first + turn * step % (end - first));
        let done = match verb {
            "deliver" => deliver_all(&mut clerk, keys.collect(), failing).await,
            "fail" => fail_all(&mut clerk, keys.collect()).await,
            _ => panic!("{line}"),
        };
        parent.say(&format!("done {done}"));
    }
}

/// As in the other language: each key until it is done, those whose number leaves `failing` in spite of a failure.
async fn deliver_all(clerk: &mut Clerk, mut queue: VecDeque<u32>, failing: u32) -> String {
    let (mut failed, mut ran, mut skipped) = (BTreeSet::new(), 0, 0);
    while let Some(number) = queue.pop_front() {
        let fails = number % 10 == failing && !failed.contains(&number);
        match clerk.deliver(number, fails).await {
            (Ok(()), Some(Outcome::Executed)) => ran += 1,
            (Ok(()), Some(Outcome::Replayed)) => skipped += 1,
            (Err(Fault::Own(_)), _) if fails => {
                failed.insert(number);
                queue.push_back(number);
            }
            (Err(Fault::Idem(busy)), _) if busy.is_retryable() => queue.push_back(number),
            other => panic!("{number}: {other:?}"),
        }
    }
    format!("{ran} {skipped}")
}

async fn fail_all(clerk: &mut Clerk, queue: Vec<u32>) -> String {
    let mut failed = 0;
    for number in queue {
        let (result, _) = clerk.deliver(number, true).await;
        failed += u32::from(matches!(result, Err(Fault::Own(_))));
    }
    failed.to_string()
}
