//! The library beside the pattern that most people write by hand, in the same run on the same server.
//!
//! `cargo xtask bench --quick` starts a throw-away Postgres and calls this. Absolute numbers are the machine's; the
//! ratio of the two, round by round, is what counts.

mod by_hand;
mod ours;
mod ratio;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use anyhow::Context;
use clap::Parser;
use comfy_table::Table;

use crate::{by_hand::ByHand, ours::Ours, ratio::Ratio};

/// Compares the library with hand-written idempotency on Postgres.
#[derive(Debug, Parser)]
struct Arguments {
    /// A few rounds: a first look.
    #[arg(long)]
    quick: bool,
    /// How many callers at once.
    #[arg(long, value_delimiter = ',')]
    callers: Vec<usize>,
    /// How many interleaved rounds.
    #[arg(long)]
    rounds: Option<usize>,
    /// The server; its database is written to. By default what `IDEM_BENCH_POSTGRES_URL` names.
    #[arg(long)]
    url: Option<String>,
}

/// One way to run a job once per key.
trait Pattern: Send + Sync + 'static {
    /// Runs the job of a key; its body is empty.
    fn run(&self, id: u64) -> impl Future<Output = anyhow::Result<()>> + Send;
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(compare(&arguments))
}

async fn compare(arguments: &Arguments) -> anyhow::Result<()> {
    let url = match &arguments.url {
        Some(url) => url.clone(),
        None => std::env::var("IDEM_BENCH_POSTGRES_URL").context(
            "no server: set `IDEM_BENCH_POSTGRES_URL`, or run `cargo xtask bench`, which starts one",
        )?,
    };
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 7 } else { 15 });
    let callers = match arguments.callers.as_slice() {
        [] if arguments.quick => &[1, 16, 64],
        [] => &[1, 16, 64, 256, 1024][..],
        chosen => chosen,
    };
    let by_hand = Arc::new(ByHand::set_up(&url).await.context("setting up the hand-written pattern")?);
    let ours = Arc::new(Ours::set_up(&url).await.context("setting up the library")?);
    let keys = AtomicU64::new(1);

    let mut table = Table::new();
    table.set_header(["work", "callers", "by hand, jobs/s", "idem, jobs/s", "ratio", "95 % of medians"]);
    for &callers in callers {
        let jobs = jobs_of(callers);
        let (mut fresh, mut repeats) = (Ratio::default(), Ratio::default());
        for round in 0..=rounds {
            let first = keys.fetch_add(jobs, Ordering::Relaxed);
            let hand = |from| measure(Arc::clone(&by_hand), callers, from, jobs);
            let idem = |from| measure(Arc::clone(&ours), callers, from, jobs);
            for ratio in [&mut fresh, &mut repeats] {
                // Whoever goes second finds the caches warm and the disk busy, so they take turns.
                let (by_hand, ours) = if round % 2 == 0 {
                    let by_hand = hand(first).await?;
                    (by_hand, idem(first).await?)
                } else {
                    let ours = idem(first).await?;
                    (hand(first).await?, ours)
                };
                // The first round fills caches and plans.
                if round > 0 {
                    ratio.add(by_hand, ours);
                }
            }
        }
        for (work, ratio) in [("fresh keys", &fresh), ("repeats", &repeats)] {
            table.add_row(ratio.row(work, callers));
        }
    }
    println!("{table}");
    Ok(())
}

/// Enough jobs for a round of about a second.
fn jobs_of(callers: usize) -> u64 {
    match callers {
        1 => 600,
        2..=16 => 3_000,
        _ => 6_400,
    }
}

/// Jobs per second of a closed loop: so many callers, each with its next job as soon as the last is done.
async fn measure<P: Pattern>(pattern: Arc<P>, callers: usize, first: u64, jobs: u64) -> anyhow::Result<f64> {
    let next = Arc::new(AtomicU64::new(first));
    let end = first + jobs;
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (pattern, next) = (Arc::clone(&pattern), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let id = next.fetch_add(1, Ordering::Relaxed);
                if id >= end {
                    return anyhow::Ok(());
                }
                pattern.run(id).await?;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    #[allow(clippy::cast_precision_loss)]
    let jobs = jobs as f64;
    Ok(jobs / start.elapsed().as_secs_f64())
}
