//! The person who looks in the outside world, and says truthfully what is there.

use std::{
    path::PathBuf,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use fastrand::Rng;
use idem_runtime::{Idem, Resolution, Resolved, Status};
use tokio::runtime;

use crate::{
    book::Book,
    campaign::News,
    history::{Became, Verdict},
    key::Key,
    plan::{self, Stream},
};

/// Values from here on are a person's.
pub(crate) const FIRST_VALUE: u64 = 1 << 40;

/// Whom to ask about a key.
#[derive(Debug)]
pub(crate) struct Person {
    asks: Sender<Key>,
}

impl Person {
    pub(crate) fn at(url: String, seed: u64, ledger: PathBuf, news: Sender<News>) -> Person {
        let (asks, asked) = mpsc::channel();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let rng = plan::stream(seed, Stream::Person, 0);
            runtime.block_on(judge(&url, rng, ledger, &asked, &news));
        });
        Person { asks }
    }

    pub(crate) fn ask(&self, key: Key) {
        self.asks.send(key).expect("a person at their desk");
    }
}

async fn is_open(idem: &Idem, key: Key) -> bool {
    let found = idem.lookup(key.to_string()).await.ok().flatten();
    found.is_some_and(|row| matches!(row.status, Status::Processing | Status::NeedsReview))
}

async fn judge(url: &str, mut rng: Rng, ledger: PathBuf, asked: &Receiver<Key>, news: &Sender<News>) {
    let idem = Idem::connect(url).await.expect("the database, before anything is done to it");
    let mut book = Book::at(ledger);
    for (key, value) in asked.iter().zip(FIRST_VALUE..) {
        book.refresh();
        let (verdict, resolution) = if book.effects(key).is_empty() {
            (Verdict::DidNot, Resolution::Retry)
        } else {
            (Verdict::Happened(value), Resolution::Completed(Some(value.into())))
        };
        let mut resolving = idem.resolve(key.to_string(), resolution).actor("the person");
        // Now and then over a holder that is alive, who has to hear of it.
        if rng.u8(..6) == 0 && is_open(&idem, key).await {
            resolving = resolving.force();
        }
        let became = match resolving.await {
            Ok(Resolved::Changed { from: Status::Completed, .. }) => Became::Overruled,
            Ok(Resolved::Changed { .. }) => Became::Changed,
            // A word that is sent again after its answer was lost meets what it has changed itself.
            Ok(Resolved::Refused { reason, .. }) if reason.contains("meantime") => Became::Unknown(reason),
            Ok(Resolved::Refused { reason, .. }) => Became::Refused(reason),
            Ok(other) => Became::Refused(format!("{other:?}")),
            Err(error) => Became::Unknown(error.to_string()),
        };
        // At the end nobody listens any more.
        let _ = news.send(News::Judged { key, verdict, became });
    }
}
