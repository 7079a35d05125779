//! Charges each user once a month, however often the queue delivers the job.
//!
//! ```text
//! cargo run --example billing                        # keys and charges in `idem.db`, in this folder
//! cargo run --example billing                        # again: nothing is executed
//! cargo run --example billing -- --help
//! ```
//!
//! In a fresh folder, let the process die in a charge, and watch that the charge is not repeated:
//!
//! ```text
//! cargo run --example billing -- --die-in-charge 7
//! cargo run --example billing                        # that key is stale after two seconds: it needs review, exit 3
//! ```
//!
//! `IDEM_DATABASE_URL=postgres://…` takes keys and charges to a server, where several of these can run at once.
//!
//! Exit codes: 0 if there is one charge for each key, 1 if not or on an error, 2 for wrong usage, 3 if a key needs
//! review.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use idem_examples::{
    Crash, DEFAULT_DATABASE, Deliveries, Ledger, Month, Notice, Options, Queue, Report, Terminal, exit,
};
use idem_runtime::{Idem, current, idempotent};
use serde::{Deserialize, Serialize};

/// Charging twice is worse than not charging, so the claim is recorded first; and whether a charge happened whose
/// worker died, a person finds out (`on_stale = "alert"` is the default).
#[idempotent(key = "billing:<user_id>:<month>", mode = "lock_first", stale_after = "2s", fingerprint = (cents))]
async fn charge_user(user_id: u64, month: Month, cents: u32, provider: &Provider) -> anyhow::Result<Receipt> {
    let reference = current().derived_key("provider"); // the provider's own idempotency key: equal on each attempt
    provider.ledger.charge(user_id, month, cents, &reference).await?;
    provider.crash.after(&format!("user {user_id} is charged for {month}")).await;
    Ok(Receipt { cents, reference })
}

/// What a charge gives, and what each repeat of it is answered with.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    cents: u32,
    reference: String,
}

/// The outside world.
struct Provider {
    ledger: Ledger,
    crash: Crash,
}

/// What the queue delivers, under a new job id each time.
#[derive(Debug, Clone, Deserialize)]
struct Job {
    user_id: u64,
    month: Month,
    cents: u32,
}

/// Charges each user once a month, however often the queue delivers the job.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: Options,

    /// Abort the process in its Nth charge: after the charge, before the completion
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    die_in_charge: Option<u64>,
}

/// How long the jobs that run get to end when the process is told to leave.
const DEADLINE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    exit(run(&Command::parse()).await)
}

async fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let terminal = Terminal::open();
    let deliveries: Deliveries<Job> =
        Deliveries::read(&command.options.deliveries(include_str!("data/deliveries.jsonl"))?);
    let keys: BTreeSet<_> = deliveries.jobs().iter().map(|job| (job.user_id, job.month)).collect();

    let idem = Idem::from_env_or(DEFAULT_DATABASE).await?;
    idem.install()?;

    let queue = Queue::new(command.options.workers, Notice::to(&idem, DEADLINE)?);
    let crash = queue.crash(command.die_in_charge);
    let provider = Arc::new(Provider { ledger: Ledger::open().await?, crash });
    let world = Arc::clone(&provider);
    let tally = queue
        .deliver(deliveries, &terminal, move |Job { user_id, month, cents }| {
            let provider = Arc::clone(&world);
            async move { charge_user(user_id, month, cents, &provider).await }
        })
        .await?;
    idem.shutdown(DEADLINE).await;

    if let Some(missed) = provider.crash.missed() {
        eprintln!("{missed}");
    }
    let charges = provider.ledger.charges(&keys).await?;
    Ok(Report::at_most_once(tally, "charges", charges, keys.len()).close(command.options.json)?)
}
