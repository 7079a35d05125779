//! A table that changes while workers are busy with it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idem_runtime::{Error, idempotent};
use idem_tests::Backend;
use tokio::{task::JoinSet, time::sleep};

use crate::cases::{
    call::{executed, replayed},
    site::{Site, Worker},
};

#[idempotent(key = "c19:<id>", stale_after = "1s", idem = w.idem)]
async fn short(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

/// Longer than its lease: heartbeats meet the change as well.
#[idempotent(key = "c19-long:<id>", stale_after = "1s", idem = w.idem)]
async fn long(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    sleep(Duration::from_millis(1_300)).await;
    Ok(id.to_owned())
}

#[idempotent(key = "c19-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

const WORKERS: usize = 4;

/// Claims, repeats, records and looks until it is told to stop; how many keys it has done.
async fn be_busy(w: Worker, n: usize, stop: Arc<AtomicBool>) -> usize {
    let mut done = 0;
    while !stop.load(Ordering::SeqCst) {
        let id = format!("{n}-{done}");
        executed(short(&w, &id)).await;
        assert_eq!(replayed(short(&w, &id)).await, id);
        executed(mail(&w, &format!("m-{id}"))).await;
        assert_eq!(replayed(mail(&w, &format!("m-{id}"))).await, format!("m-{id}"));
        assert!(w.find(&format!("c19:{id}")).await.is_some());
        done += 1;
    }
    done
}

async fn be_long(w: Worker, n: usize, stop: Arc<AtomicBool>) -> usize {
    let mut done = 0;
    while !stop.load(Ordering::SeqCst) {
        let id = format!("l-{n}-{done}");
        executed(long(&w, &id)).await;
        done += 1;
    }
    done
}

/// What our next migration may do, and what the people who run the database may do on their own.
fn changes(backend: Backend) -> &'static [&'static str] {
    match backend {
        Backend::Memory => &[],
        Backend::Mysql => &[
            "ALTER TABLE idempotency_keys ADD COLUMN tomorrow integer",
            "ALTER TABLE idempotency_keys ADD COLUMN tenant varchar(20) NOT NULL DEFAULT 'none'",
            "ALTER TABLE idempotency_keys MODIFY `key` varbinary(300) NOT NULL",
            "ALTER TABLE idempotency_keys MODIFY status varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
                 NOT NULL DEFAULT 'processing'",
            "ALTER TABLE idempotency_keys MODIFY worker longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL",
            "CREATE INDEX of_jobs ON idempotency_keys (job(32))",
            "ANALYZE TABLE idempotency_keys",
            "DROP INDEX of_jobs ON idempotency_keys",
            "ALTER TABLE idempotency_keys DROP COLUMN tomorrow",
            "ALTER TABLE idempotency_keys FORCE",
        ],
        Backend::Sqlite => &[
            "ALTER TABLE idempotency_keys ADD COLUMN tomorrow integer",
            "ALTER TABLE idempotency_keys ADD COLUMN tenant text NOT NULL DEFAULT 'none'",
            "CREATE INDEX of_jobs ON idempotency_keys (job)",
            "ANALYZE",
            "ALTER TABLE idempotency_keys RENAME COLUMN tomorrow TO day_after",
            "DROP INDEX of_jobs",
            "ALTER TABLE idempotency_keys DROP COLUMN day_after",
            "VACUUM",
        ],
        Backend::Postgres => &[
            "ALTER TABLE idempotency_keys ADD COLUMN tomorrow integer",
            "ALTER TABLE idempotency_keys ADD COLUMN tenant text NOT NULL DEFAULT 'none'",
            "ALTER TABLE idempotency_keys ALTER COLUMN key TYPE varchar(300) COLLATE \"C\"",
            "ALTER TABLE idempotency_keys ALTER COLUMN key TYPE text COLLATE \"C\"",
            "ALTER TABLE idempotency_keys ALTER COLUMN status TYPE varchar(64)",
            "ALTER TABLE idempotency_keys ALTER COLUMN status TYPE text",
            "ALTER TABLE idempotency_keys ALTER COLUMN worker TYPE varchar(1000)",
            "CREATE INDEX of_jobs ON idempotency_keys (job)",
            "CREATE INDEX CONCURRENTLY of_workers ON idempotency_keys (worker)",
            "ANALYZE idempotency_keys",
            "DROP INDEX of_jobs",
            "ALTER TABLE idempotency_keys DROP COLUMN tomorrow",
            "ALTER TABLE idempotency_keys SET (fillfactor = 70)",
            "VACUUM FULL idempotency_keys",
            "REINDEX TABLE idempotency_keys",
        ],
    }
}

pub(in crate::cases) async fn c19_a_change_under_busy_workers_fails_no_call(site: &Site) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut workers = JoinSet::new();
    for n in 0..WORKERS {
        let w = site.worker().await;
        workers.spawn(be_busy(w.clone(), n, Arc::clone(&stop)));
        workers.spawn(be_long(w, n, Arc::clone(&stop)));
    }
    let collector = site.worker().await;
    let mut hand = site.connection().await;
    for change in changes(site.backend()) {
        sleep(Duration::from_millis(150)).await;
        hand.execute(change).await;
        collector.idem.purge().await.expect("a purge in the midst of it");
    }
    sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::SeqCst);
    let done: usize = workers.join_all().await.into_iter().sum();
    assert!(done >= 2 * WORKERS, "busy all the time: {done}");
    for entry in site.ledger.entries() {
        assert_eq!(site.effects(&entry), 1, "{entry}");
    }
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys WHERE status <> 'completed'").await, 0);
}
