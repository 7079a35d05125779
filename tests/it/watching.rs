//! Watchers that are processes of their own, and what they count.

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use idem_runtime::{Alert, Builder, Error, Idem, Status, idempotent, store};
use idem_tests::{Backend, Child, Database, Ledger, child, child::Parent};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, SqliteConnection, raw_sql};
use tokio::sync::Notify;

use crate::rows::claim;

const OFTEN: Duration = Duration::from_millis(20);

/// A claim whose worker died long ago.
async fn dead(url: &str, key: &str) {
    let store = store::open(&store::StoreOptions::new(url)).expect("a store");
    let row = store::NewRow { on_stale: Some("alert".to_owned()), lease: store::Moment::At(1), ..claim() };
    store.insert(&[store::Insert { key: key.into(), row }]).await.expect("an answer");
}

async fn until_told(idem: &Idem, key: &str) {
    for _ in 0..3_000 {
        let row = idem.lookup(key).await.expect("a look").expect("a row");
        if row.status == Status::NeedsReview && row.alerted_at.is_some() {
            return;
        }
        tokio::time::sleep(OFTEN).await;
    }
    panic!("nobody was told of {key}: {:#?}", idem.lookup(key).await);
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn watches() {
    let Some(parent) = Parent::attach() else { return };
    let ledger = Ledger::open(Path::new(&env::var("LEDGER").expect("set by the parent")));
    let tell = move |alerts: &[Alert]| alerts.iter().for_each(|alert| ledger.record(&alert.key));
    let builder = Idem::builder().url(env::var("URL").expect("set by the parent")).connections(1);
    let idem = builder.watch_every(OFTEN).on_alert(tell).connect().await.expect("an `Idem`");
    parent.say("watches");
    assert_eq!(parent.hear(), "end");
    drop(idem);
}

async fn ten_processes_tell_of_each_claim_once(database: &Database) {
    let (ledger, idem) = (Ledger::new(), Idem::builder().url(database.url()).watcher(false));
    let idem = idem.connect().await.expect("an `Idem`");
    let mut watchers: Vec<Child> = (0..10)
        .map(|_| {
            let mut command = child::test("watching::watches");
            Child::spawn(command.env("URL", database.url()).env("LEDGER", ledger.path()))
        })
        .collect();
    for watcher in &mut watchers {
        watcher.expect("watches");
    }
    let keys: Vec<String> = (0..30).map(|n| format!("watched:{n}")).collect();
    for key in &keys {
        dead(database.url(), key).await;
    }
    for key in &keys {
        until_told(&idem, key).await;
    }
    // Whoever would tell a second time has the time to.
    tokio::time::sleep(20 * OFTEN).await;
    for watcher in &mut watchers {
        watcher.say("end");
        assert!(watcher.wait().success(), "{}", watcher.transcript());
    }
    for key in &keys {
        assert_eq!(ledger.count(key), 1, "{key}");
    }
}

macro_rules! on_databases {
    ($($name:ident: $backend:ident)+) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn ten_processes_tell_of_each_claim_once() {
                if let Some(database) = super::Backend::$backend.database() {
                    super::ten_processes_tell_of_each_claim_once(&database).await;
                }
            }
        })+
    };
}

on_databases! { sqlite: Sqlite postgres: Postgres mysql: Mysql }

/// Rows of others that a look meets, and one of ours behind them that is told of all the same.
async fn hide_no_other(database: &Database, idem: &Idem) {
    dead(database.url(), "good:1").await;
    until_told(idem, "good:1").await;
}

fn watching(database: &Database) -> Builder {
    Idem::builder().url(database.url()).watch_every(OFTEN).on_alert(|_: &[Alert]| {})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_cannot_be_read_hide_no_other_on_sqlite() {
    let database = Backend::Sqlite.database().expect("SQLite is always there");
    let idem = watching(&database).connect().await.expect("an `Idem`");
    let mut raw = SqliteConnection::connect(database.url()).await.expect("a connection");
    raw_sql(
        "INSERT INTO idempotency_keys (key, created_at, error, attempt, lease_until) VALUES
        (x'fffe41', '2020-01-01 00:00:00', NULL, 0, NULL), ('bad:2', '2020-01-01 00:00:00', x'ff', 0, NULL),
        ('bad:3', '2020-01-01 00:00:00', NULL, 5000000000, NULL), ('bad:4', '2020-01-01 00:00:00', NULL, 0, 5.5)",
    )
    .execute(&mut raw)
    .await
    .expect("rows");
    hide_no_other(&database, &idem).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_are_no_text_hide_no_other_on_mysql() {
    let Some(database) = Backend::Mysql.database() else { return };
    let idem = watching(&database).connect().await.expect("an `Idem`");
    let mut raw = MySqlConnection::connect(database.url()).await.expect("a connection");
    let keys: Vec<_> = (0..300).map(|n| format!("(x'01ff{n:08x}', '2020-01-01')")).collect();
    let rows = format!("INSERT INTO idempotency_keys (`key`, created_at) VALUES {}", keys.join(", "));
    raw_sql(AssertSqlSafe(rows)).execute(&mut raw).await.expect("rows");
    raw_sql("INSERT INTO idempotency_keys (`key`, created_at) VALUES ('foreign:1', '2020-01-01')")
        .execute(&mut raw)
        .await
        .expect("a row");
    until_told(&idem, "foreign:1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_locked_delay_no_other_on_postgres() {
    let Some(database) = Backend::Postgres.database() else { return };
    let setting_up = Idem::builder().url(database.url()).watcher(false);
    drop(setting_up.connect().await.expect("a table"));
    for n in 0..20 {
        dead(database.url(), &format!("locked:{n}")).await;
    }
    let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
    raw_sql("BEGIN; SELECT FROM idempotency_keys FOR UPDATE").execute(&mut raw).await.expect("locks");
    let idem = watching(&database).connect().await.expect("an `Idem`");
    let begun = Instant::now();
    hide_no_other(&database, &idem).await;
    // Were each of them waited for, this would take a hundred seconds.
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    raw_sql("COMMIT").execute(&mut raw).await.expect("free");
    until_told(&idem, "locked:19").await;
}

#[idempotent(key = "overdue:<id>", stale_after = "20s", idem = idem)]
async fn goes_on(id: u32, idem: &Idem, told: &Notify) -> Result<(), Error> {
    told.notified().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overdue_claim_that_cannot_be_read_is_told_of_later_on_postgres() {
    let Some(database) = Backend::Postgres.database() else { return };
    let told = Arc::new(Notify::new());
    let tell = Arc::clone(&told);
    let builder = Idem::builder().url(database.url()).watcher(false).overdue_after(Duration::from_secs(1));
    let idem = builder.on_alert(move |_: &[Alert]| tell.notify_one()).connect().await.expect("an `Idem`");
    let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
    let locked = async {
        while idem.lookup("overdue:1").await.expect("a look").is_none() {
            tokio::time::sleep(OFTEN).await;
        }
        raw_sql("BEGIN; LOCK TABLE idempotency_keys").execute(&mut raw).await.expect("a lock");
        // Longer than the first try to read the row.
        tokio::time::sleep(Duration::from_secs(4)).await;
        raw_sql("COMMIT").execute(&mut raw).await.expect("free");
    };
    let (done, ()) = tokio::join!(goes_on(1, &idem, &told), locked);
    done.expect("told, and so ended");
}

/// What was counted, by name.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

impl Counts {
    fn at(&self, name: &str) -> Arc<AtomicU64> {
        let mut counts = self.0.lock().expect("counts");
        Arc::clone(counts.entry(name.to_owned()).or_default())
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        Counter::from_arc(self.at(&format!("{}{}", key.name(), labels.collect::<String>())))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.at(key.name()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.at(key.name());
        Histogram::noop()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_watcher_does_is_counted() {
    let counts = Counts::default();
    metrics::set_global_recorder(counts.clone()).expect("the only one in this binary");
    let database = Backend::Sqlite.database().expect("SQLite is always there");
    let builder = Idem::builder().url(database.url()).watch_every(OFTEN).on_alert(|_: &[Alert]| {});
    let idem = builder.connect().await.expect("an `Idem`");
    dead(database.url(), "counted:1").await;
    until_told(&idem, "counted:1").await;
    for counter in ["idem_watcher_looks_total", "idem_reviews_total", "idem_alerts_total kind=needs_review"] {
        assert!(counts.at(counter).load(Ordering::SeqCst) > 0, "{counter}");
    }
    let known = counts.0.lock().expect("counts");
    for metric in ["idem_watcher_look_seconds", "idem_watcher_stale_claims"] {
        assert!(known.contains_key(metric), "{metric}");
    }
}
