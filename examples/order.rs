//! Fulfils orders in three phases, each with a promise of its own: reserves the pieces, charges, mails a receipt.
//!
//! ```text
//! cargo run --example order                          # keys and stock in `idem.db`, charges and mails in `*.jsonl`
//! cargo run --example order                          # again: nothing is executed
//! cargo run --example order -- --help
//! ```
//!
//! In a fresh folder, let the process die in a phase or behind it, and watch the next run go on where that one ended:
//!
//! ```text
//! cargo run --example order -- --die-in charge       # or reserve, after-reserve, after-charge, receipt, after-receipt
//! cargo run --example order                          # asks the provider about that charge, and does not charge again
//! ```
//!
//! | phase | twice or never? | what it is | a process that dies in it |
//! | --- | --- | --- | --- |
//! | reserve | neither | `transactional`: rows in the database of the keys | rolled back, reserved by the next run |
//! | charge | twice is worse | `lock_first`, and the provider can be asked | the next run asks whether it happened |
//! | receipt | never is worse | `record_after` | the next run mails again |
//!
//! The provider is a process of its own with an address on this machine, and outlives who dies. With
//! `--lose-replies 3` it books its first three charges without an answer.
//!
//! `IDEM_DATABASE_URL=postgres://…` or `mysql://…` takes keys and stock to a server.
//!
//! Exit codes: 0 if each order has one reservation, one charge and a mail, 1 if not or on an error, 2 for wrong usage,
//! 3 if a key needs review.

use std::{collections::BTreeSet, fmt, process::ExitCode, sync::Arc, time::Duration};

use clap::{Parser, ValueEnum};
use idem_examples::{
    Charge, Charges, DEFAULT_DATABASE, Deliveries, Notice, Options, Outbox, Provider, Queue, Report, Stock,
    Terminal, Warehouse, database, exit, serve,
};
use idem_runtime::{Idem, Probe, current, idempotent, phase};
use serde::Deserialize;
use sqlx::{Database, MySql, Pool, Postgres, Sqlite, Transaction, pool::PoolOptions};

/// A run that finds another one dead takes over (`on_stale = "retry"`): the phases know what may be repeated.
#[idempotent(key = "order:<order.id>", on_stale = "retry", stale_after = "2s", fingerprint = (order.cents))]
async fn fulfil<DB: Stock>(order: &Order, shop: &Shop<DB>) -> anyhow::Result<Charge> {
    // Rows of the keys' own database: they and the phase's key are committed together, before the next phase begins.
    let mut transaction = shop.pool.begin_with(DB::BEGIN).await?;
    let tx = &mut transaction;
    phase!("reserve", mode = "transactional", tx = tx, async {
        let there = DB::reserve(tx, order.id.into(), &order.article, order.pieces.into()).await?;
        anyhow::ensure!(there, "there are no {} pieces of {}", order.pieces, order.article);
        shop.reached(Point::Reserve, order);
        Ok(())
    });
    transaction.commit().await?;
    shop.reached(Point::AfterReserve, order);

    // Twice is worse. Nobody here knows whether a charge happened whose worker died or whose reply was lost, but the
    // provider does.
    let charge = phase!("charge", on_stale = probe(async || shop.was_charged().await), async {
        let reference = current().derived_key("provider");
        let charge = shop.provider.charge(order.id.into(), order.cents.into(), &reference).await?;
        shop.reached(Point::Charge, order);
        Ok(charge)
    });
    shop.reached(Point::AfterCharge, order);

    // Never is worse: it is recorded after it went out.
    phase!("receipt", mode = "record_after", async {
        shop.outbox.send(&order.email, &subject(order.id)).await?;
        shop.reached(Point::Receipt, order);
        Ok(())
    });
    shop.reached(Point::AfterReceipt, order);
    Ok(charge)
}

/// An article is put on the shelf once, too, however often this program is started.
#[idempotent(key = "stock:<article>", mode = "transactional")]
async fn take_in<DB: Stock>(article: &str, pieces: i64, tx: &mut Transaction<'_, DB>) -> anyhow::Result<()> {
    Ok(DB::take_in(tx, article, pieces).await?)
}

/// The provider's books.
const CHARGES: &str = "charges.jsonl";

/// How many pieces there are of each article at first.
const PIECES: i64 = 1_000;

/// What the queue delivers, under a new job id each time.
#[derive(Debug, Clone, Deserialize)]
struct Order {
    id: u32,
    article: String,
    pieces: u32,
    cents: u32,
    email: String,
}

/// What a mail is about.
fn subject(order_id: u32) -> String {
    format!("receipt for order {order_id}")
}

/// What a job needs, and where it is to die.
struct Shop<DB: Database> {
    pool: Pool<DB>,
    provider: Provider,
    outbox: Outbox,
    die_in: Option<Point>,
}

impl<DB: Database> Shop<DB> {
    /// Asked inside of the phase, as its body is: so the reference is the same.
    async fn was_charged(&self) -> Probe<Charge> {
        match self.provider.find(&current().derived_key("provider")).await {
            Ok(Some(charge)) => Probe::Happened(charge),
            // And a request that is still under way comes too late: the reference makes it and the next one the same.
            Ok(None) => Probe::DidNotHappen,
            Err(error) => {
                tracing::warn!(%error, "the provider does not say");
                Probe::Unknown
            }
        }
    }

    /// Does not return from the point that was asked for. Whatever else the process is doing ends there, too.
    fn reached(&self, point: Point, order: &Order) {
        if self.die_in == Some(point) {
            eprintln!("dying: {point} of order {}", order.id);
            std::process::abort();
        }
    }
}

/// A point at which the process can be told to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Point {
    /// The pieces are reserved, and nothing is committed
    Reserve,
    /// The reservation is committed
    AfterReserve,
    /// The provider has charged, and that is not recorded
    Charge,
    /// The charge is recorded
    AfterCharge,
    /// The mail is sent, and that is not recorded
    Receipt,
    /// The mail is recorded, and the order is not completed
    AfterReceipt,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

/// Fulfils orders in three phases, each with a promise of its own.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: Options,

    /// Abort the process where the first order comes to this point
    #[arg(long, value_name = "POINT")]
    die_in: Option<Point>,

    /// How many of the provider's first answers to a charge get lost
    #[arg(long, value_name = "N", default_value_t = 0)]
    lose_replies: u64,

    /// Be the provider
    #[arg(long, hide = true)]
    provider: bool,
}

/// How long the jobs that run get to end when the process is told to leave.
const DEADLINE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    exit(run(&Command::parse()).await)
}

async fn run(command: &Command) -> anyhow::Result<ExitCode> {
    if command.provider {
        serve(Charges::at(CHARGES), command.lose_replies).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let url = database();
    match url.split(':').next().unwrap_or_default() {
        "postgres" | "postgresql" => run_on::<Postgres>(&url, command).await,
        "mysql" | "mariadb" => run_on::<MySql>(&url, command).await,
        _ if url.contains(":memory:") || url == "memory:" => {
            anyhow::bail!("`{url}` is one connection's alone, and the stock is behind another one")
        }
        _ => run_on::<Sqlite>(&url, command).await,
    }
}

async fn run_on<DB: Stock>(url: &str, command: &Command) -> anyhow::Result<ExitCode> {
    let terminal = Terminal::open();
    let idem = Idem::from_env_or(DEFAULT_DATABASE).await?;
    idem.install()?;
    let code = trade::<DB>(url, &idem, command, &terminal).await;
    idem.shutdown(DEADLINE).await;
    code
}

/// Opens the shop, has the orders fulfilled, and counts.
async fn trade<DB: Stock>(
    url: &str,
    idem: &Idem,
    command: &Command,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let deliveries: Deliveries<Order> =
        Deliveries::read(&command.options.deliveries(include_str!("data/orders.jsonl"))?);
    let orders: BTreeSet<u64> = deliveries.jobs().iter().map(|order| order.id.into()).collect();
    let mails = deliveries.jobs().iter().map(|order| subject(order.id)).collect();

    let mut warehouse = Warehouse::open().await?;
    let pool = PoolOptions::<DB>::new().max_connections(1).connect(url).await?;
    let articles: BTreeSet<&str> = deliveries.jobs().iter().map(|order| order.article.as_str()).collect();
    for article in articles {
        let mut tx = pool.begin_with(DB::BEGIN).await?;
        take_in(article, PIECES, &mut tx).await?;
        tx.commit().await?;
    }

    let lose_replies = command.lose_replies.to_string();
    let provider = Provider::open(&["--provider", "--lose-replies", &lose_replies]).await?;
    let outbox = Outbox::at("outbox.jsonl");
    let shop = Arc::new(Shop { pool, provider, outbox, die_in: command.die_in });
    let world = Arc::clone(&shop);
    let tally = Queue::new(command.options.workers, Notice::to(idem, DEADLINE)?)
        .deliver(deliveries, terminal, move |order| {
            let shop = Arc::clone(&world);
            async move { fulfil(&order, &shop).await }
        })
        .await?;

    if let Some(point) = shop.die_in {
        eprintln!("nothing died: no order came to {point} in this run");
    }
    let inventory = warehouse.inventory(&orders).await?;
    let (charges, mails) = (Charges::at(CHARGES).count(&orders)?, shop.outbox.mails(&mails)?);
    let report = Report::of_orders(tally, &inventory, charges, shop.provider.asked(), mails, orders.len());
    Ok(report.close(command.options.json)?)
}
