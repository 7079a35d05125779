//! A database that compares more loosely than a program does: keys are bytes, whatever its collation takes for one.

use idem_runtime::{Error, Idem, idempotent, record::Status};
use idem_tests::Backend;
use tokio::task::JoinSet;

use super::{
    call::{executed, replayed},
    site::{Site, Worker},
};

/// Accounts that are one to some collation or other, by case, accents, width or spelling.
const ACCOUNTS: [&str; 22] = [
    "4qD3",
    "4qd3",
    "4QD3",
    "caf\u{e9}",
    "cafe\u{301}",
    "cafe",
    "CAFE",
    "stra\u{df}e",
    "strasse",
    "\u{c5}",
    "A\u{30a}",
    "\u{212b}",
    "A",
    "a",
    "\u{ff41}",
    "I",
    "i",
    "\u{131}",
    "\u{130}",
    "i\u{200d}",
    "1",
    "\u{661}",
];

#[idempotent(key = "a6-acct:<id>", key_fn = account_key, idem = w.idem)]
async fn open_account(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(format!("opened {id}"))
}

async fn has_a_row_of_its_own(w: &Worker, id: &str) {
    let key = account_key(id).expect("a key");
    let row = w.row(key.as_str()).await;
    assert_eq!((row.key.as_str(), &row.status), (key.as_str(), &Status::Completed));
    assert_eq!(row.result, Some(format!("\"opened {id}\"")));
}

pub(super) async fn a6_keys_that_only_a_collation_would_equate_are_distinct(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    for id in ACCOUNTS {
        executed(open_account(&w, id)).await;
    }
    for id in ACCOUNTS {
        assert_eq!(replayed(open_account(&other, id)).await, format!("opened {id}"));
        has_a_row_of_its_own(&other, id).await;
        assert_eq!(site.effects(id), 1, "{id}");
    }
}

pub(super) async fn a6_each_of_their_jobs_runs_at_once_beside_the_others(site: &Site) {
    let w = site.worker().await;
    let mut calls = JoinSet::new();
    for id in ACCOUNTS {
        let w = w.clone();
        calls.spawn(async move { assert_eq!(executed(open_account(&w, id)).await, format!("opened {id}")) });
    }
    calls.join_all().await;
    for id in ACCOUNTS {
        has_a_row_of_its_own(&w, id).await;
    }
}

/// The same in a table that an operator made from the printed statements, and by a hand whose connection compares as
/// loosely as it can.
pub(super) async fn a6_a_row_is_found_by_its_own_spelling_alone(site: &Site) {
    let ddl = Idem::builder().url(site.database.url()).ddl().expect("statements");
    site.execute(&ddl).await;
    let w = site.worker_by(|builder| builder.migrate(false)).await;
    for id in ACCOUNTS {
        executed(open_account(&w, id)).await;
    }
    let mut hand = site.connection().await;
    if site.backend() == Backend::Mysql {
        hand.execute("SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci").await;
    }
    for id in ACCOUNTS {
        let key = account_key(id).expect("a key");
        let count = format!("SELECT count(*) FROM idempotency_keys WHERE \"key\" = '{}'", key.as_str());
        assert_eq!(hand.number(&count).await, 1, "{id}");
        has_a_row_of_its_own(&w, id).await;
    }
}
