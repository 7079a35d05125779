//! The person who looks in the outside world, and says truthfully what is there.

use std::{
    path::PathBuf,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use idem_runtime::{Idem, Resolution, Resolved};
use tokio::runtime;

use crate::{
    campaign::News,
    effects::Effects,
    history::{Became, Verdict},
    key::Key,
};

/// Values from here on are a person's.
pub(crate) const FIRST_VALUE: u64 = 1 << 40;

/// Whom to ask about a key.
#[derive(Debug)]
pub(crate) struct Person {
    asks: Sender<Key>,
}

impl Person {
    pub(crate) fn at(url: String, ledger: PathBuf, news: Sender<News>) -> Person {
        let (asks, asked) = mpsc::channel();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(judge(&url, ledger, &asked, &news));
        });
        Person { asks }
    }

    pub(crate) fn ask(&self, key: Key) {
        self.asks.send(key).expect("a person at their desk");
    }
}

async fn judge(url: &str, ledger: PathBuf, asked: &Receiver<Key>, news: &Sender<News>) {
    let idem = Idem::connect(url).await.expect("the database, before anything is done to it");
    let mut effects = Effects::in_ledger(ledger);
    for (key, value) in asked.iter().zip(FIRST_VALUE..) {
        effects.refresh();
        let (verdict, resolution) = if effects.of_key(key).is_empty() {
            (Verdict::DidNot, Resolution::Retry)
        } else {
            (Verdict::Happened(value), Resolution::Completed(Some(value.into())))
        };
        let became = match idem.resolve(key.to_string(), resolution).actor("the person").await {
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
