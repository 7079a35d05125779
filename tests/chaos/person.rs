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
    book::{Book, Phase, Step},
    campaign::News,
    history::{About, Became, Verdict},
    key::{Key, Kind},
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

async fn is_open(idem: &Idem, key: &str) -> bool {
    let found = idem.lookup(key).await.ok().flatten();
    found.is_some_and(|row| matches!(row.status, Status::Processing | Status::NeedsReview))
}

/// What it is about a key that needs a person.
async fn about(idem: &Idem, key: Key) -> (About, String) {
    let job = key.to_string();
    if key.kind != Kind::Order {
        return (About::Job, job);
    }
    let charge = format!("{job}/{}", Phase::Charge.name());
    let found = idem.lookup(&*charge).await.ok().flatten();
    match found {
        Some(row) if row.status == Status::NeedsReview => (About::Charge, charge),
        _ => (About::Job, job),
    }
}

/// Whether what a key needs a person for has happened.
fn happened(book: &Book, key: Key, about: About) -> bool {
    match about {
        About::Job => !book.effects(key).is_empty(),
        About::Charge => book.phases(key).iter().any(|line| line.step == Step::Phase(Phase::Charge)),
    }
}

async fn judge(url: &str, mut rng: Rng, ledger: PathBuf, asked: &Receiver<Key>, news: &Sender<News>) {
    let idem = Idem::connect(url).await.expect("the database, before anything is done to it");
    let mut book = Book::at(ledger);
    for (key, value) in asked.iter().zip(FIRST_VALUE..) {
        let (about, row) = about(&idem, key).await;
        book.refresh();
        let (verdict, resolution) = if happened(&book, key, about) {
            (Verdict::Happened(value), Resolution::Completed(Some(value.into())))
        } else {
            (Verdict::DidNot, Resolution::Retry)
        };
        let mut resolving = idem.resolve(&*row, resolution).actor("the person");
        // Now and then over a holder that is alive, who has to hear of it.
        if rng.u8(..6) == 0 && is_open(&idem, &row).await {
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
        let _ = news.send(News::Judged { key, about, verdict, became });
    }
}
