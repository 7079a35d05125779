//! Moves money between two accounts, in the transaction that holds the job's key: both postings and the key, or
//! neither.
//!
//! ```text
//! cargo run --example transfer                       # keys and books in `idem.db`, in this folder
//! cargo run --example transfer                       # again: nothing is executed
//! cargo run --example transfer -- --help
//! ```
//!
//! The jobs run in worker processes. Every tenth delivery meets with trouble between its body and the commit: in half
//! of the cases the transaction is dropped, in the other half the worker aborts, and another takes its place. The
//! queue delivers again, and in the end the accounts are right to the cent. `--seed` draws other deliveries,
//! `--troubles` more of them or none.
//!
//! `IDEM_DATABASE_URL=postgres://…` or `mysql://…` takes keys and books to a server.
//!
//! Exit codes: 0 if the books are right, 1 if not or on an error, 2 for wrong usage, 3 if a key needs review.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use idem_examples::{
    Bank, Books, Crew, DEFAULT_DATABASE, Deliveries, Notice, Options, Queue, Report, Terminal, Trouble,
    Troubles, database, exit, work,
};
use idem_runtime::{Idem, idempotent};
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction, pool::PoolOptions};
use uuid::Uuid;

/// The effect is rows in the database of the keys, so the key goes into their transaction, and the caller commits it.
#[idempotent(key = "transfer:<transfer_id>", mode = "transactional", fingerprint = (from, to, cents))]
async fn transfer<DB: Bank>(
    transfer_id: Uuid,
    from: i64,
    to: i64,
    cents: i64,
    tx: &mut Transaction<'_, DB>,
) -> anyhow::Result<()> {
    let mut postings = [(from, -cents), (to, cents)];
    postings.sort_unstable(); // in one order of accounts for all, or two transfers could wait for one another
    for (account, cents) in postings {
        DB::post(tx, transfer_id, account, cents).await?;
    }
    Ok(())
}

/// An account is opened once, too, however often this program is started.
#[idempotent(key = "account:<account>", mode = "transactional")]
async fn open_account<DB: Bank>(
    account: i64,
    cents: i64,
    tx: &mut Transaction<'_, DB>,
) -> anyhow::Result<()> {
    Ok(DB::open_account(tx, account, cents).await?)
}

/// The accounts, and what each has at first.
const ACCOUNTS: [i64; 2] = [1001, 1002];
const CENTS: i64 = 1_000_000;

/// What the queue delivers, under a new job id each time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job {
    transfer_id: Uuid,
    from: i64,
    to: i64,
    cents: i64,
}

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
struct Attempt {
    job: Job,
    trouble: Option<Trouble>,
}

/// Moves money between two accounts, in the transaction that holds the job's key.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: Options,

    /// How many deliveries meet with trouble between body and commit
    #[arg(long, value_name = "N", default_value_t = 100)]
    troubles: usize,

    /// Which ones
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,

    /// Be one of the workers
    #[arg(long, hide = true)]
    worker: bool,
}

/// How long the jobs that run get to end when the process is told to leave.
const DEADLINE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    exit(run(&Command::parse()).await)
}

async fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let url = database();
    match url.split(':').next().unwrap_or_default() {
        "postgres" | "postgresql" => run_on::<Postgres>(&url, command).await,
        "mysql" | "mariadb" => run_on::<MySql>(&url, command).await,
        _ if url.contains(":memory:") || url == "memory:" => {
            anyhow::bail!("`{url}` is this process's alone, and the transfers are made by others")
        }
        _ => run_on::<Sqlite>(&url, command).await,
    }
}

async fn run_on<DB: Bank>(url: &str, command: &Command) -> anyhow::Result<ExitCode> {
    let terminal = Terminal::open();
    let idem = Idem::from_env_or(DEFAULT_DATABASE).await?;
    idem.install()?;
    let pool = PoolOptions::<DB>::new().max_connections(1).connect(url).await?;
    let code = if command.worker {
        work(|attempt| attend(&pool, attempt)).await.map(|()| ExitCode::SUCCESS)
    } else {
        supervise(&idem, &pool, command, &terminal).await
    };
    idem.shutdown(DEADLINE).await;
    code
}

/// One delivery: a transaction, the job in it, the commit.
async fn attend<DB: Bank>(pool: &Pool<DB>, Attempt { job, trouble }: Attempt) -> anyhow::Result<()> {
    let Job { transfer_id, from, to, cents } = job;
    let mut tx = pool.begin_with(DB::BEGIN).await?;
    transfer(transfer_id, from, to, cents, &mut tx).await?;
    match trouble {
        None => Ok(tx.commit().await?),
        Some(Trouble::Drop) => anyhow::bail!("the transaction is dropped"),
        Some(Trouble::Die) => std::process::abort(),
    }
}

/// Opens the accounts and the queue, and closes the books.
async fn supervise<DB: Bank>(
    idem: &Idem,
    pool: &Pool<DB>,
    command: &Command,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let deliveries: Deliveries<Job> =
        Deliveries::read(&command.options.deliveries(include_str!("data/transfers.jsonl"))?);
    let keys: BTreeSet<_> = deliveries.jobs().iter().map(|job| job.transfer_id).collect();
    let mut books = Books::open().await?;
    for account in ACCOUNTS {
        let mut tx = pool.begin_with(DB::BEGIN).await?;
        open_account(account, CENTS, &mut tx).await?;
        tx.commit().await?;
    }
    let before = books.balance(&keys).await?;

    let troubles = Arc::new(Troubles::draw(command.seed, command.troubles, deliveries.jobs().len()));
    let crew = Arc::new(Crew::new(&["--worker"]));
    let workers = Arc::clone(&crew);
    let tally = Queue::new(command.options.workers, Notice::to(idem, DEADLINE)?)
        .hand_out(deliveries.numbered(), terminal, move |(number, job)| {
            let (troubles, workers) = (Arc::clone(&troubles), Arc::clone(&workers));
            async move { workers.run(&Attempt { job, trouble: troubles.strike(number) }).await }
        })
        .await?;
    crew.dismiss().await?;

    let after = books.balance(&keys).await?;
    Ok(Report::in_the_books(tally, &before, &after, keys.len()).close(command.options.json)?)
}
