use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use idem_runtime::{
    Builder, Idem,
    record::Record,
    store::{
        self, Answer, Ending, ErrorClass, Finish, Insert, NewRow, Renew, Renewal, Replace, Reply, Store,
        StoreError, StoreOptions, memory::MemoryStore,
    },
};
use idem_tests::{Backend, Database};
use tokio::{sync::Barrier, task::JoinSet, time::sleep};

use super::{raw::Raw, rows};

/// A store on a database of its own, with its table in place, and a hand in its rows that is not the store's.
pub(crate) struct Subject {
    pub(super) store: Arc<dyn Store>,
    pub(super) raw: Raw,
    memory: Option<Arc<MemoryStore>>,
    database: Database,
}

impl Subject {
    /// Runs a case at a database, if it is there. The test runner counts one that is missing as not covered.
    pub(super) async fn meets(database: Option<Database>, case: impl AsyncFnOnce(&Subject)) {
        if let Some(database) = database {
            let subject = Self::unprepared(database).await;
            subject.store.prepare(true).await.expect("a table");
            case(&subject).await;
        }
    }

    /// One whose database is empty yet.
    async fn unprepared(database: Database) -> Self {
        let memory = (database.backend() == Backend::Memory).then(|| Arc::new(MemoryStore::default()));
        let store = match &memory {
            Some(memory) => Arc::clone(memory) as Arc<dyn Store>,
            None => open(database.url()),
        };
        let raw = match &memory {
            Some(memory) => Raw::Memory(Arc::clone(memory)),
            None => Raw::connect(&database).await,
        };
        Self { store, raw, memory, database }
    }

    /// A fresh database of the same kind, empty.
    pub(super) async fn empty(&self) -> Self {
        Self::unprepared(self.database.another()).await
    }

    /// Another hand in the same rows.
    pub(super) async fn another_hand(&self) -> Raw {
        Raw::connect(&self.database).await
    }

    /// What another process would have: connections of its own to the same rows.
    pub(super) fn another(&self) -> Arc<dyn Store> {
        match &self.memory {
            Some(memory) => Arc::clone(memory) as Arc<dyn Store>,
            None => open(self.database.url()),
        }
    }

    /// An `Idem` on the same database, as another process would have it.
    pub(super) async fn idem(&self) -> Idem {
        self.builder().connect().await.expect("an `Idem`")
    }

    /// An `Idem` in the making, for details of its own.
    pub(super) fn builder(&self) -> Builder {
        match &self.memory {
            Some(memory) => Idem::builder().store(Arc::clone(memory) as Arc<dyn Store>),
            None => Idem::builder().url(self.database.url()),
        }
    }

    pub(super) async fn insert(&self, key: &str, row: NewRow) -> Answer {
        only(self.store.insert(&[Insert { key: key.into(), row }]).await)
    }

    /// A claim of owner `n` that must succeed; its fence.
    pub(super) async fn claim(&self, key: &str, n: u8) -> i64 {
        rows::written(self.insert(key, rows::claim(n)).await)
    }

    /// A claim of owner `n` whose lease has ended.
    pub(super) async fn stale_claim(&self, key: &str, n: u8) -> i64 {
        let fence = self.claim(key, n).await;
        self.raw.end_lease(key).await;
        fence
    }

    pub(super) async fn finish(&self, key: &str, n: u8, fence: i64, ending: Ending) -> Answer {
        only(self.store.finish(&[finish(key, n, fence, ending)]).await)
    }

    pub(super) async fn renew(&self, key: &str, n: u8, fence: i64, lease: Duration) -> Renewal {
        let renew = Renew { key: key.into(), owner: rows::owner(n), fence, lease };
        only(self.store.renew(&[renew]).await)
    }

    pub(super) async fn replace(&self, replacement: &Replace) -> Answer {
        self.store.replace(replacement).await.expect("an answer")
    }

    pub(super) async fn read(&self, key: &str) -> Option<Record> {
        only(self.store.read(&[key.into()]).await)
    }

    /// The row, which must be there.
    pub(super) async fn row(&self, key: &str) -> Record {
        self.read(key).await.unwrap_or_else(|| panic!("no row for {key}"))
    }
}

fn open(url: &str) -> Arc<dyn Store> {
    store::open(&StoreOptions::new(url)).expect("a store")
}

pub(super) fn finish(key: &str, n: u8, fence: i64, ending: Ending) -> Finish {
    Finish { key: key.into(), owner: rows::owner(n), fence, ending }
}

/// The one answer to a batch of one.
fn only<T>(answers: Result<Vec<T>, StoreError>) -> T {
    let mut answers = answers.expect("an answer");
    assert_eq!(answers.len(), 1, "one answer for one item");
    answers.remove(0)
}

/// Sends a write until it is answered, as the engine does while a store is busy.
pub(super) async fn answered<'a, T>(send: impl Fn() -> Reply<'a, T>) -> T {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        match send().await {
            Ok(answer) => return answer,
            Err(error) if error.class != ErrorClass::Permanent && Instant::now() < patience => {
                sleep(Duration::from_millis(2)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Lets contenders go at the same moment; what each of them got.
pub(super) async fn race<T, F>(contenders: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let contenders: Vec<F> = contenders.into_iter().collect();
    let start = Arc::new(Barrier::new(contenders.len()));
    let mut running = JoinSet::new();
    for contender in contenders {
        let start = Arc::clone(&start);
        running.spawn(async move {
            start.wait().await;
            contender.await
        });
    }
    running.join_all().await
}
