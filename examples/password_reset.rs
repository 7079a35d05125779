//! Mails password resets: never none, at times two.
//!
//! ```text
//! cargo run --example password_reset                 # keys in `idem.db`, mails in `outbox.jsonl`, in this folder
//! cargo run --example password_reset                 # again: nothing is executed
//! cargo run --example password_reset -- --help
//! ```
//!
//! In a fresh folder, let the process die between a mail and its record:
//!
//! ```text
//! cargo run --example password_reset -- --die-after-send 7
//! cargo run --example password_reset                 # that mail goes out a second time; none is missing
//! ```
//!
//! Two deliveries of one key at the same moment may both mail, too. `IDEM_DATABASE_URL=postgres://…` takes the keys to
//! a server.
//!
//! Exit codes: 0 if there is a mail for each key, 1 if one is missing or on an error, 2 for wrong usage, 3 if a key
//! needs review.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use idem_examples::{
    Crash, DEFAULT_DATABASE, Deliveries, Notice, Options, Outbox, Queue, Report, Terminal, exit,
};
use idem_runtime::{Idem, idempotent};
use serde::Deserialize;
use uuid::Uuid;

/// A user without the mail is locked out, a user with two of them shrugs: so it is recorded after it went out.
#[idempotent(key = "email:password_reset:<user_id>:<reset_token_id>", mode = "record_after", ttl = "24h")]
async fn send_password_reset(
    user_id: u64,
    reset_token_id: Uuid,
    address: &str,
    post: &Post,
) -> anyhow::Result<()> {
    post.outbox.send(address, &subject(user_id, reset_token_id)).await?;
    post.crash.after(&format!("{address} has mail about {reset_token_id}")).await;
    Ok(())
}

/// What a mail is about.
fn subject(user_id: u64, reset_token_id: Uuid) -> String {
    format!("{user_id}'s password, with {reset_token_id}")
}

/// The outside world.
struct Post {
    outbox: Outbox,
    crash: Crash,
}

/// What the queue delivers, under a new job id each time.
#[derive(Debug, Clone, Deserialize)]
struct Job {
    user_id: u64,
    reset_token_id: Uuid,
    address: String,
}

/// Mails password resets: never none, at times two.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: Options,

    /// Abort the process after its Nth mail: after sending it, before recording that
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    die_after_send: Option<u64>,
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
        Deliveries::read(&command.options.deliveries(include_str!("data/resets.jsonl"))?);
    let keys: BTreeSet<_> =
        deliveries.jobs().iter().map(|job| subject(job.user_id, job.reset_token_id)).collect();

    let idem = Idem::from_env_or(DEFAULT_DATABASE).await?;
    idem.install()?;

    let queue = Queue::new(command.options.workers, Notice::to(&idem, DEADLINE)?);
    let crash = queue.crash(command.die_after_send);
    let post = Arc::new(Post { outbox: Outbox::at("outbox.jsonl"), crash });
    let world = Arc::clone(&post);
    let tally = queue
        .deliver(deliveries, &terminal, move |Job { user_id, reset_token_id, address }| {
            let post = Arc::clone(&world);
            async move { send_password_reset(user_id, reset_token_id, &address, &post).await }
        })
        .await?;
    idem.shutdown(DEADLINE).await;

    if let Some(missed) = post.crash.missed() {
        eprintln!("{missed}");
    }
    let mails = post.outbox.mails(&keys)?;
    Ok(Report::at_least_once(tally, "mails", mails, keys.len()).close(command.options.json)?)
}
