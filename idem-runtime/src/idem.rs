//! The handle: connect, build, install, look up, purge, shut down.

use std::{
    env, fmt,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use once_cell::sync::OnceCell;

use crate::{
    alert::{Alert, Hook},
    error::Error,
    job::Job,
    jobs::{self, Overlap},
    key::{Key, MAX_BYTES},
    record::Record,
    resolve::{Forget, Resolution, Resolve},
    service::{Limits, Service},
    store::{self, ErrorClass, Store, StoreError, StoreOptions},
};

/// The environment variable that [`Idem::from_env`] reads.
const URL_VARIABLE: &str = "IDEM_DATABASE_URL";

static INSTALLED: OnceCell<Idem> = OnceCell::new();

/// A connection to the table of keys: what idempotent jobs claim through.
///
/// It owns one background thread with connections of its own. Clones share it. Dropping the last one never blocks.
#[derive(Clone)]
pub struct Idem(Arc<Inner>);

struct Inner {
    service: Service,
    namespace: Option<String>,
    worker: String,
    hook: Hook,
    overlaps: Vec<Overlap>,
    closing: AtomicBool,
}

impl fmt::Debug for Idem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idem")
            .field("store", &self.0.service.store().name())
            .field("namespace", &self.0.namespace)
            .field("worker", &self.0.worker)
            .finish_non_exhaustive()
    }
}

impl Idem {
    /// Connects to a database and creates the table where it is missing.
    ///
    /// `sqlite://idem.db` (created where it is missing), `sqlite::memory:`, `postgres://user@host/database`, or
    /// `memory:` for a table in this process alone.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a malformed URL, a read-only database without the table, or a table that is not ours;
    /// [`Error::Store`] for a server that cannot be reached.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder().url(url).connect().await
    }

    /// Connects to the database that the environment variable `IDEM_DATABASE_URL` names.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the variable is missing: a forgotten variable must not give each container a table of
    /// its own. Otherwise as [`connect`](Self::connect).
    pub async fn from_env() -> Result<Self, Error> {
        match url_from_env()? {
            Some(url) => Self::connect(&url).await,
            None => Err(Error::config(format!(
                "the environment variable `{URL_VARIABLE}` is not set; set it to a database URL, or call \
                 `Idem::from_env_or(\"sqlite://idem.db\")` where an embedded database is meant"
            ))),
        }
    }

    /// [`from_env`](Self::from_env) with an explicit default, whose place it logs.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn from_env_or(default: &str) -> Result<Self, Error> {
        if let Some(url) = url_from_env()? {
            return Self::connect(&url).await;
        }
        let idem = Self::connect(default).await?;
        let file = default.strip_prefix("sqlite://").map(|rest| rest.split('?').next().unwrap_or(rest));
        let place = file.and_then(|file| std::path::absolute(file).ok());
        let place = place.map_or_else(|| store::without_password(default), |path| path.display().to_string());
        tracing::info!(place, "`{URL_VARIABLE}` is not set; keys are kept in the default place");
        Ok(idem)
    }

    /// Sets the details.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Makes this the `Idem` of all jobs that do not name one with `idem = …`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if one is installed already.
    pub fn install(&self) -> Result<(), Error> {
        INSTALLED.set(self.clone()).map_err(|_| {
            Error::config(
                "an `Idem` is installed already; install one for a process, pass others with `idem = …`",
            )
        })
    }

    pub(crate) fn installed() -> Result<Self, Error> {
        INSTALLED.get().cloned().ok_or(Error::NotInstalled)
    }

    /// The row of a key, as it is now.
    ///
    /// The key is a [`Key`], or text as it stands in a row or a log; the namespace may be left out.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] for a text that is no key, [`Error::Store`].
    pub async fn lookup(&self, key: impl AsRef<str>) -> Result<Option<Record>, Error> {
        let key = self.key(key.as_ref())?;
        let service = self.service();
        let record = service.read(key.stored(), service.patience(None)).await;
        Ok(record.map_err(|failure| failure.into_error(Some(&key)))?.map(|record| *record))
    }

    /// Decides what becomes of a key that stopped: see [`Resolve`].
    pub fn resolve(&self, key: impl AsRef<str>, resolution: Resolution) -> Resolve {
        Resolve::new(self.clone(), key.as_ref().to_owned(), resolution)
    }

    /// Deletes a key and its history, so that its job runs afresh: see [`Forget`].
    pub fn forget(&self, key: impl AsRef<str>) -> Forget {
        Forget::new(self.clone(), key.as_ref().to_owned())
    }

    /// Deletes all finished rows that are past their stored expiry, in batches that block nobody; says how many.
    ///
    /// Rows that are kept for ever stay. Several processes may purge at once.
    ///
    /// # Errors
    ///
    /// [`Error::Store`]; what was deleted until then stays deleted.
    pub async fn purge(&self) -> Result<u64, Error> {
        const BATCH: u32 = 1_000;
        let store = Arc::clone(self.service().store());
        let purging = self.service().complete(async move {
            let mut deleted = 0;
            loop {
                let batch = store.purge(BATCH).await?;
                deleted += batch;
                if batch < u64::from(BATCH) {
                    return Ok(deleted);
                }
            }
        });
        let deleted: Result<u64, StoreError> = purging.await.map_err(|failure| failure.into_error(None))?;
        deleted.map_err(store_error)
    }

    /// The statements that create the table, for those who run them by hand (`migrate(false)`).
    #[must_use]
    pub fn ddl(&self) -> String {
        self.service().store().ddl()
    }

    /// Stops claiming, and waits until no body runs or the deadline has passed. Bodies that still run keep their
    /// heartbeats, and their completions are recorded.
    ///
    /// Answers the keys that still run at the deadline.
    pub async fn shutdown(&self, deadline: Duration) -> Vec<String> {
        self.0.closing.store(true, Ordering::SeqCst);
        let live = Arc::clone(self.service().live());
        let waiting = Arc::clone(&live);
        let idle = async move { tokio::time::timeout(deadline, waiting.idle()).await.is_ok() };
        // Where the thread is gone there is nobody to wait for.
        let _ = self.service().background(idle).await;
        let mut running: Vec<String> = live.keys().iter().map(ToString::to_string).collect();
        running.sort_unstable();
        running
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.0.closing.load(Ordering::SeqCst)
    }

    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(crate) fn worker(&self) -> &str {
        &self.0.worker
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.namespace.as_deref()
    }

    pub(crate) fn hook(&self) -> &Hook {
        &self.0.hook
    }

    /// A key from text, under this namespace.
    pub(crate) fn key(&self, text: &str) -> Result<Key, Error> {
        Ok(Key::from_text(text)?.within(self.namespace()))
    }

    /// The pair of jobs that keeps this one from running.
    pub(crate) fn overlap_of(&self, job: &Job) -> Option<&Overlap> {
        self.0.overlaps.iter().find(|pair| pair.concerns(job))
    }
}

fn url_from_env() -> Result<Option<String>, Error> {
    match env::var(URL_VARIABLE) {
        Ok(url) => Ok(Some(url)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            Err(Error::config(format!("the environment variable `{URL_VARIABLE}` is not valid Unicode")))
        }
    }
}

/// The error of a store call that belongs to no key.
pub(crate) fn store_error(error: StoreError) -> Error {
    Error::Store { key: None, message: error.to_string(), source: Some(error.source) }
}

/// Sets the details of an [`Idem`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    options: StoreOptions,
    namespace: Option<String>,
    worker: Option<String>,
    hook: Hook,
    migrate: bool,
    limits: Limits,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            options: StoreOptions::new(""),
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
            },
        }
    }
}

impl Builder {
    /// The database; see [`Idem::connect`].
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.options.url = url.into();
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

    /// Whom to tell when keys need review. The hook runs on a thread of its own and may block.
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

    /// How long a claim or a look-up waits for a busy or absent store; 5 s by default.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.limits.store_timeout = timeout;
        self
    }

    /// How long `record_after` tries to record an effect that happened; 30 s by default.
    pub fn record_for(mut self, duration: Duration) -> Self {
        self.limits.record_for = duration;
        self
    }

    /// When a claim without owner (a foreign worker's) needs review; 15 minutes by default.
    pub fn foreign_stale_after(mut self, duration: Duration) -> Self {
        self.limits.foreign_stale_after = duration;
        self
    }

    /// What `Error::NeedsReview` answers as `retry_after`; 15 minutes by default.
    pub fn review_retry_after(mut self, duration: Duration) -> Self {
        self.limits.review_after = duration;
        self
    }

    /// How long a released row, with its history, is kept from purging; 24 hours by default.
    pub fn keep_released_for(mut self, duration: Duration) -> Self {
        self.limits.released_for = duration;
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

    /// Connects.
    ///
    /// # Errors
    ///
    /// As [`Idem::connect`], and [`Error::Config`] for a namespace that is no part of a key.
    pub async fn connect(self) -> Result<Idem, Error> {
        let Self { options, namespace, worker, hook, migrate, limits } = self;
        if let Some(namespace) = &namespace {
            check_namespace(namespace)?;
        }
        let store = store::open(&options)?;
        let timeout = limits.store_timeout;
        let service = Service::start(Arc::clone(&store), limits)?;
        let prepared = service.complete(async move { prepare(&*store, migrate, timeout).await });
        prepared.await.map_err(|failure| failure.into_error(None))?.map_err(|error| match error.class {
            ErrorClass::Permanent => Error::Config { message: error.to_string(), source: Some(error.source) },
            ErrorClass::Transient | ErrorClass::Locked => Error::Store {
                key: None,
                message: format!("{} is not ready: {error}", store::without_password(&options.url)),
                source: Some(error.source),
            },
        })?;
        let overlaps = jobs::overlaps();
        for overlap in &overlaps {
            tracing::error!(%overlap, "two jobs can share a key; neither runs");
        }
        let worker = worker.unwrap_or_else(default_worker);
        Ok(Idem(Arc::new(Inner {
            service,
            namespace,
            worker,
            hook,
            overlaps,
            closing: AtomicBool::new(false),
        })))
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
