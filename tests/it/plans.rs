//! Statements that were prepared on an empty table, and used often enough for Postgres to keep their plans, once the
//! table is big.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use idem_runtime::store::{
    self, Answer, Audit, Ending, Finish, Insert, PhaseDeed, PhaseWrite, Renew, Replace, Store, StoreOptions,
    Watch,
};
use idem_tests::Backend;
use sqlx::{Connection, MySqlConnection, PgConnection, SqliteConnection, raw_sql};

use crate::rows::{LEASE, OWNER, claim};

/// How long each kind of statement took, for `size` keys of this round.
async fn use_all(store: &dyn Store, round: &str, size: usize) -> Vec<(&'static str, Duration)> {
    let mut took = Vec::new();
    let mut began = Instant::now();
    let mut lap = |what| {
        took.push((what, began.elapsed()));
        began = Instant::now();
    };
    let batch: Vec<_> =
        (0..size).map(|n| Insert { key: format!("plans:{round}:{size}:{n}").into(), row: claim() }).collect();
    let answers = store.insert(&batch).await.expect("answers");
    lap("claim");
    store.insert(&batch).await.expect("answers");
    lap("claim again");
    let fences = answers.iter().map(|answer| match answer {
        Answer::Written { fence } => *fence,
        other => panic!("{other:?}"),
    });
    let owned = batch.iter().zip(fences);
    let renewals: Vec<_> = owned
        .clone()
        .map(|(claim, fence)| Renew { key: claim.key.clone(), owner: OWNER.to_owned(), fence, lease: LEASE })
        .collect();
    store.renew(&renewals).await.expect("answers");
    lap("renew");
    let endings: Vec<_> = owned
        .map(|(claim, fence)| Finish {
            key: claim.key.clone(),
            owner: OWNER.to_owned(),
            fence,
            ending: Ending::Completed { result: None, ttl: None },
        })
        .collect();
    store.finish(&endings).await.expect("answers");
    lap("finish");
    let keys: Vec<Arc<str>> = batch.iter().map(|claim| claim.key.clone()).collect();
    let record = store.read(&keys).await.expect("rows").remove(0).expect("a row");
    lap("read");
    let replace = Replace {
        key: keys[0].clone(),
        expected: record.version(),
        row: claim(),
        raise_fence: true,
        renew_birth: false,
        audit: None,
    };
    store.replace(&replace).await.expect("an answer");
    lap("replace");
    look(store).await;
    lap("look for stale claims");
    store.audit(&keys[0]).await.expect("lines");
    lap("audit");
    store.purge(10).await.expect("a number");
    lap("purge");
    took.extend(use_phases(store, &format!("plans:{round}:{size}:of phases")).await);
    took
}

/// A job with two phases, which is purged, and one that is forgotten.
async fn use_phases(store: &dyn Store, name: &str) -> Vec<(&'static str, Duration)> {
    let mut took = Vec::new();
    for is_purged in [true, false] {
        let key: Arc<str> = format!("{name}:{is_purged}").into();
        let answers = store.insert(&[Insert { key: key.clone(), row: claim() }]).await.expect("answers");
        let Answer::Written { fence } = answers[0] else { panic!("{answers:?}") };
        let job = Renew { key: key.clone(), owner: OWNER.to_owned(), fence, lease: LEASE };
        let write = |deed| PhaseWrite { job: job.clone(), deed };
        let phases = ["a", "b"].map(|name| Arc::<str>::from(format!("{key}/{name}")));
        let mut began = Instant::now();
        let mut lap = |what| {
            took.push((what, began.elapsed()));
            began = Instant::now();
        };
        let inserts = phases
            .each_ref()
            .map(|key| write(PhaseDeed::Insert(Box::new(Insert { key: key.clone(), row: claim() }))));
        store.phase(&inserts[..1]).await.expect("an answer");
        lap("claim a phase");
        store.phase(&inserts).await.expect("answers");
        lap("claim phases");
        let rows = store.between(&format!("{key}/"), &format!("{key}0"), 100).await.expect("rows");
        assert_eq!(rows.len(), 2);
        lap("read phases");
        let replace = |audit| Replace {
            key: phases[0].clone(),
            expected: rows[0].version(),
            row: claim(),
            raise_fence: true,
            renew_birth: false,
            audit,
        };
        store.phase(&[write(PhaseDeed::Replace(Box::new(replace(None))))]).await.expect("an answer");
        lap("replace a phase");
        store.phase(&[write(PhaseDeed::Replace(Box::new(replace(Some(audit())))))]).await.expect("an answer");
        lap("replace a phase with a line");
        let ending = Ending::Completed { result: None, ttl: None };
        let finish = Finish { key: phases[1].clone(), owner: OWNER.to_owned(), fence, ending };
        store.phase(&[write(PhaseDeed::Finish(finish))]).await.expect("an answer");
        lap("finish a phase");
        let ending = Ending::Completed { result: None, ttl: is_purged.then_some(Duration::ZERO) };
        let finish = Finish { key: key.clone(), owner: OWNER.to_owned(), fence, ending };
        store.finish(&[finish]).await.expect("an answer");
        let version =
            store.read(std::slice::from_ref(&key)).await.expect("rows")[0].as_ref().expect("a row").version();
        lap("finish a job with phases");
        if is_purged {
            assert_eq!(store.purge(10).await.expect("a number"), 1);
            lap("purge a job with phases");
        } else {
            assert!(store.forget(&key, &version, &audit()).await.expect("a reply"));
            lap("forget a job with phases");
        }
        assert!(store.read(&phases).await.expect("rows").iter().all(Option::is_none), "they went along");
    }
    took
}

fn audit() -> Audit {
    Audit {
        actor: "ops".to_owned(),
        from_status: "completed".to_owned(),
        to_status: "forgotten".to_owned(),
        note: "asked to".to_owned(),
        old_result: None,
    }
}

/// What a watcher asks.
async fn look(store: &dyn Store) {
    let watch = Watch { foreign_stale_after: LEASE, untold: true, limit: 256 };
    store.watch(&watch).await.expect("rows");
}

#[tokio::test]
async fn a_plan_made_on_an_empty_table_goes_through_the_key_of_a_big_one() {
    if !Backend::Postgres.available() {
        eprintln!("{} is missing here: `cargo xtask test` starts it", Backend::Postgres);
        return;
    }
    for statistics in ["SELECT", "ANALYZE idempotency_keys"] {
        let database = Backend::Postgres.fresh();
        let mut options = StoreOptions::new(database.url());
        options.connections = 1;
        let store = store::open(&options).expect("a store");
        store.prepare(true).await.expect("a table");
        let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
        // Statistics that come later would have every plan made again.
        let frozen = "ALTER TABLE idempotency_keys SET (autovacuum_enabled = off)";
        raw_sql(frozen).execute(&mut raw).await.expect("an answer");
        raw_sql(statistics).execute(&mut raw).await.expect("an answer");
        for round in 0..8 {
            for size in [1, 4] {
                use_all(&*store, &format!("empty{round}"), size).await;
            }
            if round == 1 {
                raw_sql(statistics).execute(&mut raw).await.expect("an answer");
            }
        }
        let grow = "INSERT INTO idempotency_keys (\"key\", status, error)
            SELECT 'grown:' || n, 'completed', repeat('x', 100) FROM generate_series(1, 200000) AS n";
        raw_sql(grow).execute(&mut raw).await.expect("an answer");

        let mut scan = Duration::MAX;
        for _ in 0..5 {
            let began = Instant::now();
            let all = "SELECT count(*) FROM idempotency_keys WHERE fence < 0";
            raw_sql(all).execute(&mut raw).await.expect("an answer");
            scan = scan.min(began.elapsed());
        }
        for size in [1, 64] {
            let mut best = use_all(&*store, "big", size).await;
            for round in 0..9 {
                let took = use_all(&*store, &format!("big{round}"), size).await;
                for (best, took) in best.iter_mut().zip(took) {
                    best.1 = best.1.min(took.1);
                }
            }
            for (what, took) in best {
                assert!(
                    took < scan,
                    "{what} of {size} takes {took:?}, a scan of all {scan:?} ({statistics})"
                );
            }
        }
    }
}

/// How long a look, all that is done with phases, and a scan take at best, on a table of very many ended rows.
macro_rules! nothing_scans {
    ($connection:ty, $backend:expr, $grow:expr) => {{
        let database = $backend.fresh();
        let store = store::open(&StoreOptions::new(database.url())).expect("a store");
        store.prepare(true).await.expect("a table");
        look(&*store).await;
        use_phases(&*store, "empty").await;
        let mut raw = <$connection>::connect(database.url()).await.expect("a connection");
        raw_sql($grow).execute(&mut raw).await.expect("an answer");
        store.insert(&[Insert { key: "alive".into(), row: claim() }]).await.expect("an answer");
        let mut best = vec![("a look", Duration::MAX)];
        best.extend(use_phases(&*store, "big").await);
        let mut scanned = Duration::MAX;
        for round in 0..10 {
            let began = Instant::now();
            look(&*store).await;
            let mut took = vec![("a look", began.elapsed())];
            took.extend(use_phases(&*store, &format!("big:{round}")).await);
            for (best, took) in best.iter_mut().zip(took) {
                best.1 = best.1.min(took.1);
            }
            let began = Instant::now();
            let all = "SELECT count(*) FROM idempotency_keys WHERE fence < 0";
            raw_sql(all).execute(&mut raw).await.expect("an answer");
            scanned = scanned.min(began.elapsed());
        }
        for (what, took) in best {
            assert!(took < scanned, "{what} takes {took:?}, a scan of all {scanned:?}");
        }
    }};
}

#[tokio::test]
async fn neither_a_look_nor_phases_scan_a_big_table_on_sqlite() {
    nothing_scans!(
        SqliteConnection,
        Backend::Sqlite,
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200000)
        INSERT INTO idempotency_keys (key, status, lease_until, error)
        SELECT 'grown:' || n, 'completed', 1, 'a text of some length, as errors have it' FROM n"
    );
}

#[tokio::test]
async fn neither_a_look_nor_phases_scan_a_big_table_on_mysql() {
    if !Backend::Mysql.available() {
        eprintln!("{} is missing here: `cargo xtask test` starts it", Backend::Mysql);
        return;
    }
    nothing_scans!(
        MySqlConnection,
        Backend::Mysql,
        "INSERT INTO idempotency_keys (`key`, status, lease_until, error)
        WITH RECURSIVE n AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 316)
        SELECT CONCAT('grown:', a.n, ':', b.n), 'completed', 1, 'a text of some length, as errors have it'
        FROM n AS a CROSS JOIN n AS b"
    );
}
