//! The worker's side: a process of its own, which does what is delivered to it.

use std::{
    env,
    path::Path,
    process,
    sync::{Arc, Mutex},
    time::Duration,
};

use idem_runtime::{Error, Idem};
use idem_tests::{Backend, Ledger, child::Parent};
use tokio::{runtime, task, time::sleep};

use crate::{
    bank::Bank,
    book::Book,
    clock,
    delivery::{Answer, Delivery, End},
    jobs::Hand,
    settings::Broken,
};

/// Where the worker finds its database.
pub(crate) const URL: &str = "IDEM_CHAOS_WORKER_URL";

/// Where it finds the ledger.
pub(crate) const LEDGER: &str = "IDEM_CHAOS_WORKER_LEDGER";

/// What it says when it is ready for deliveries, and what time it is by its clock.
pub(crate) const READY: &str = "ready";

/// What it is told to shut down.
pub(crate) const RETIRE: &str = "retire";

/// How long it then waits for its bodies.
const NOTICE: Duration = Duration::from_secs(1);

/// Works until it is killed, or its parent is gone.
pub(crate) fn work(parent: Parent) {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let hand = Arc::new(runtime.block_on(hand()));
    let parent = Arc::new(parent);
    parent.say(&format!("{READY} {}", clock::of_day()));
    loop {
        let line = parent.hear();
        let (parent, hand) = (Arc::clone(&parent), Arc::clone(&hand));
        if line == RETIRE {
            runtime.spawn(async move {
                hand.idem.shutdown(NOTICE).await;
                process::exit(0);
            });
            continue;
        }
        let delivery: Delivery = serde_json::from_str(&line).expect("a delivery");
        runtime.spawn(async move {
            let end = task::spawn(hand.work(delivery)).await;
            let answer = Answer { delivery: delivery.id, end: end.unwrap_or(End::Panicked) };
            parent.say(&serde_json::to_string(&answer).expect("plain data"));
        });
    }
}

async fn hand() -> Hand {
    let url = env::var(URL).expect("set by the parent");
    let ledger = env::var(LEDGER).expect("set by the parent");
    let scheme = url.split(':').next();
    let backend = Backend::DATABASES.into_iter().find(|backend| Some(backend.name()) == scheme);
    Hand {
        idem: connected(&url).await,
        ledger: Ledger::open(Path::new(&ledger)),
        book: Mutex::new(Book::at(ledger.into())),
        bank: Bank::at(backend.expect("a database"), &url),
        broken: Broken::of_environment(),
        returned: Mutex::default(),
    }
}

/// Connects, however long the database is away.
async fn connected(url: &str) -> Idem {
    loop {
        let builder = Idem::builder()
            .url(url)
            .store_timeout(Duration::from_secs(2))
            .record_for(Duration::from_secs(10))
            .review_retry_after(Duration::from_millis(500));
        match builder.connect().await {
            Ok(idem) => return idem,
            Err(Error::Store { .. }) => sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("{error}"),
        }
    }
}
