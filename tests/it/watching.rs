//! Watchers that are processes of their own, and what they count.

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idem_runtime::{Alert, Idem, Status, store};
use idem_tests::{Backend, Child, Database, Ledger, child, child::Parent};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

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
