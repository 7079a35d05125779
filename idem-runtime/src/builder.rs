//! The details of a handle, before it connects.

use std::{env, sync::Arc, time::Duration};

use crate::{
    alert::{Alert, Hook},
    error::Error,
    idem::{Idem, Parts},
    jobs,
    key::MAX_BYTES,
    review::Reviewer,
    service::{Limits, Service},
    store::{self, ErrorClass, Store, StoreError, StoreOptions},
    watcher::{Rounds, Watcher},
};

/// What any limit comes to that is longer: a century. Clocks that count on from now can hold it.
const FOREVER: Duration = Duration::from_hours(24 * 36_500);

/// Setting up asks many questions, and may have to create a table: it is given so long at least.
const SETTING_UP: Duration = Duration::from_secs(5);

/// Sets the details of an [`Idem`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    options: StoreOptions,
    store: Option<Arc<dyn Store>>,
    namespace: Option<String>,
    worker: Option<String>,
    hook: Hook,
    migrate: bool,
    limits: Limits,
    watches: bool,
    rounds: Rounds,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            options: StoreOptions::new(""),
            store: None,
            namespace: None,
            worker: None,
            hook: Hook::default(),
            migrate: true,
            limits: Limits {
                store_timeout: Duration::from_secs(5),
                record_for: Duration::from_secs(30),
                foreign_stale_after: Duration::from_mins(15),
                review_after: Duration::from_mins(15),
                released_for: Duration::from_hours(24),
                result_limit: 64 * 1024,
                queue: 10_000,
                overdue_after: None,
            },
            watches: true,
            rounds: Rounds { every: Duration::from_secs(10), untold_for: Duration::from_mins(1) },
        }
    }
}

impl Builder {
    /// The database; see [`Idem::connect`].
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.options.url = url.into();
        self
    }

    /// A store of one's own, in place of what a URL names: another database, or one that several handles share.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// The table; `idempotency_keys` by default.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.options.table = Some(table.into());
        self
    }

    /// The schema of the table, where the database has such; by default the connection's own.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.options.schema = Some(schema.into());
        self
    }

    /// A prefix on every key, so that applications or environments can share a table. It ends in a mark that no key
    /// can hold; none by default.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// How many connections to keep; 2 by default. `sqlite::memory:` always has one.
    pub fn connections(mut self, connections: usize) -> Self {
        self.options.connections = connections;
        self
    }

    /// What rows and alerts call this process; by default the executable's name and the process id. A name gives no
    /// right to a row.
    pub fn worker(mut self, label: impl Into<String>) -> Self {
        self.worker = Some(label.into());
        self
    }

    /// Whom to tell when keys need review, or when a job goes on and on. The hook runs on a thread of its own and may
    /// block; what comes meanwhile is told as one.
    ///
    /// Each claim is told of by the one process whose write turned it over, and once more by another one only if that
    /// process dies before the hook returns, or the hook panics.
    pub fn on_alert(mut self, hook: impl Fn(&[Alert]) + Send + Sync + 'static) -> Self {
        self.hook = Hook::new(hook);
        self
    }

    /// Whether a missing table is created; true by default. With `false` a missing table is an error that tells how
    /// to get the DDL.
    pub fn migrate(mut self, create: bool) -> Self {
        self.migrate = create;
        self
    }

    /// How long a claim or a look-up waits for a busy or absent store; 5 s by default. Connecting waits 5 s at least.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.limits.store_timeout = timeout.min(FOREVER);
        self
    }

    /// How long `record_after` tries to record an effect that happened; 30 s by default.
    pub fn record_for(mut self, duration: Duration) -> Self {
        self.limits.record_for = duration.min(FOREVER);
        self
    }

    /// When a claim without owner (a foreign worker's) needs review; 15 minutes by default.
    pub fn foreign_stale_after(mut self, duration: Duration) -> Self {
        self.limits.foreign_stale_after = duration.min(FOREVER);
        self
    }

    /// What `Error::NeedsReview` answers as `retry_after`; 15 minutes by default.
    pub fn review_retry_after(mut self, duration: Duration) -> Self {
        self.limits.review_after = duration.min(FOREVER);
        self
    }

    /// How long a released row, with its history, is kept from purging; 24 hours by default.
    pub fn keep_released_for(mut self, duration: Duration) -> Self {
        self.limits.released_for = duration.min(FOREVER);
        self
    }

    /// The longest result that is stored, in bytes of JSON; 64 KiB by default. A longer one is completed without.
    pub fn result_limit(mut self, bytes: usize) -> Self {
        self.limits.result_limit = bytes;
        self
    }

    /// How many claims and look-ups may wait for the store at once; 10,000 by default. More are refused with
    /// [`Error::Store`]. Completions are never refused.
    pub fn queue_limit(mut self, requests: usize) -> Self {
        self.limits.queue = requests;
        self
    }

    /// Whether this process looks for stale claims, those of other processes included; true by default. Without, a
    /// stale claim is found by the next call of its key alone.
    pub fn watcher(mut self, watches: bool) -> Self {
        self.watches = watches;
        self
    }

    /// How often stale claims are looked for, one statement each time; about every 10 s by default. Processes spread
    /// their looks by chance.
    pub fn watch_every(mut self, interval: Duration) -> Self {
        self.rounds.every = interval.min(FOREVER);
        self
    }

    /// How long a row may need review and say that nobody was told, before another process tells: 1 minute by default.
    /// A process whose hook takes long is not overtaken; it says all the while that it is at it. What is shorter than
    /// five looks comes to five looks.
    pub fn untold_for(mut self, duration: Duration) -> Self {
        self.rounds.untold_for = duration.min(FOREVER);
        self
    }

    /// When a claim that heartbeats on and on is told of, once: after ten of its leases by default.
    pub fn overdue_after(mut self, duration: Duration) -> Self {
        self.limits.overdue_after = Some(duration.min(FOREVER));
        self
    }

    /// The statements that create the table, for those who run them by hand (`migrate(false)`). Connects to nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a malformed URL or a table name that is not an identifier.
    pub fn ddl(&self) -> Result<String, Error> {
        Ok(self.open()?.ddl())
    }

    fn open(&self) -> Result<Arc<dyn Store>, Error> {
        self.store.as_ref().map_or_else(|| store::open(&self.options), |store| Ok(Arc::clone(store)))
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// As [`Idem::connect`], and [`Error::Config`] for a namespace that is no part of a key.
    pub async fn connect(self) -> Result<Idem, Error> {
        let store = self.open()?;
        let place = match &self.store {
            Some(store) => store.name().to_owned(),
            None => store::without_password(&self.options.url),
        };
        let Self { namespace, worker, hook, migrate, limits, watches, rounds, .. } = self;
        if let Some(namespace) = &namespace {
            check_namespace(namespace)?;
        }
        let timeout = limits.store_timeout.max(SETTING_UP);
        let service = Service::start(Arc::clone(&store), limits, hook.clone())?;
        let prepared = service.complete(async move { prepare(&*store, migrate, timeout).await });
        prepared.await.map_err(|failure| failure.into_error(None))?.map_err(|error| match error.class {
            ErrorClass::Permanent => Error::Config { message: error.to_string(), source: Some(error.source) },
            ErrorClass::Transient | ErrorClass::Locked => Error::Store {
                key: None,
                message: format!("{place} is not ready: {error}"),
                source: Some(error.source),
            },
        })?;
        let overlaps = jobs::overlaps();
        for overlap in &overlaps {
            tracing::error!(%overlap, "two jobs can share a key; neither runs");
        }
        let worker = worker.unwrap_or_else(default_worker);
        let reviewer = Reviewer { service, hook, worker };
        if watches {
            let watcher = Watcher::new(&reviewer, rounds);
            reviewer.service.spawn(watcher.watch()).map_err(|failure| failure.into_error(None))?;
        }
        Ok(Idem::new(Parts { reviewer, namespace, overlaps }))
    }
}

/// Prepares the store, patiently where it may be a matter of time.
async fn prepare(store: &dyn Store, create: bool, timeout: Duration) -> Result<(), StoreError> {
    if store.is_local() {
        return store.prepare(create).await;
    }
    let end = tokio::time::Instant::now() + timeout;
    let mut last = None;
    loop {
        let Ok(outcome) = tokio::time::timeout_at(end, store.prepare(create)).await else {
            let silence = || {
                let message = format!("no answer within {timeout:?}");
                StoreError::new(ErrorClass::Transient, "setting up the table", message)
            };
            return Err(last.unwrap_or_else(silence));
        };
        match outcome {
            Err(error) if error.class != ErrorClass::Permanent => {
                tracing::debug!(%error, "the database is not ready; trying again");
                last = Some(error);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            outcome => return outcome,
        }
    }
}

fn check_namespace(namespace: &str) -> Result<(), Error> {
    let illegal = |c: char| matches!(c, '%' | '/' | '<' | '>') || c.is_whitespace() || c.is_control();
    if namespace.is_empty() || namespace.contains(illegal) || namespace.len() > MAX_BYTES / 4 {
        return Err(Error::config(format!(
            "`{namespace}` is not a namespace: 1 to {} bytes without white space, `%`, `/`, `<` and `>`",
            MAX_BYTES / 4
        )));
    }
    Ok(())
}

fn default_worker() -> String {
    let program = env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_stem()).and_then(|name| name.to_str());
    format!("{}:{}", program.unwrap_or("worker"), std::process::id())
}
