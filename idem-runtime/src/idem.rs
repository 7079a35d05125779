//! The handle: connect, install, look up, purge, shut down.

use std::{
    env, fmt,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use once_cell::sync::OnceCell;

use crate::{
    builder::Builder,
    error::Error,
    job::Job,
    jobs::Overlap,
    key::Key,
    progress::with_phases,
    record::Record,
    resolve::{Forget, Resolution, Resolve, patiently},
    review::Reviewer,
    service::{Failure, Service, within},
    store::{self, Audited, ErrorClass, Store, StoreError},
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
    parts: Parts,
    closing: AtomicBool,
}

/// What a builder puts together.
pub(crate) struct Parts {
    pub(crate) reviewer: Reviewer,
    pub(crate) namespace: Option<String>,
    pub(crate) overlaps: Vec<Overlap>,
}

impl fmt::Debug for Idem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idem")
            .field("store", &self.service().store().name())
            .field("namespace", &self.0.parts.namespace)
            .field("worker", &self.worker())
            .finish_non_exhaustive()
    }
}

impl Idem {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner { parts, closing: AtomicBool::new(false) }))
    }

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

    pub(crate) fn installed(job: &'static Job) -> Result<Self, Error> {
        INSTALLED.get().cloned().ok_or(Error::NotInstalled { job: job.name() })
    }

    /// The row of a key, as it is now, and those of the job's [phases](Record::phases), each with its state and times.
    ///
    /// The key is a [`Key`], or text as it stands in a row or a log; the namespace may be left out.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] for a text that is no key, [`Error::Store`].
    pub async fn lookup(&self, key: impl AsRef<str>) -> Result<Option<Record>, Error> {
        let key = self.key(key.as_ref())?;
        let service = self.service();
        let failed = |failure: Failure| failure.into_error(Some(&key));
        let record = service.read(key.stored(), service.patience(None)).await.map_err(failed)?;
        match record {
            Some(record) => Ok(Some(with_phases(service, &key, *record).await.map_err(failed)?)),
            None => Ok(None),
        }
    }

    /// What the audit table tells of a key, oldest first: takeovers, claims that were turned over for review (with what
    /// was known of each), and what people decided. It outlives the row.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] for a text that is no key, [`Error::Store`].
    pub async fn audit(&self, key: impl AsRef<str>) -> Result<Vec<Audited>, Error> {
        let key = self.key(key.as_ref())?.stored();
        let store = Arc::clone(self.service().store());
        let until = (!store.is_local()).then(|| self.service().patience(None).until);
        let reading = async move { patiently(until, || store.audit(&key)).await.map(|sent| sent.answer) };
        let lines = self.service().complete(reading).await.map_err(|failure| failure.into_error(None))?;
        lines.map_err(store_error)
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
        let store = Arc::clone(self.service().store());
        let patience = self.service().limits().store_timeout;
        let purging = self.service().complete(async move { purge(&*store, patience).await });
        let deleted: Result<u64, StoreError> = purging.await.map_err(|failure| failure.into_error(None))?;
        deleted.map_err(store_error)
    }

    /// The statements that create the table, for those who run them by hand (`migrate(false)`).
    #[must_use]
    pub fn ddl(&self) -> String {
        self.service().store().ddl()
    }

    /// Stops claiming, and waits until no body runs or the deadline has passed. Bodies that still run keep their
    /// heartbeats, may call other jobs, and their completions are recorded.
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
        &self.0.parts.reviewer.service
    }

    pub(crate) fn worker(&self) -> &str {
        &self.0.parts.reviewer.worker
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.parts.namespace.as_deref()
    }

    pub(crate) fn reviewer(&self) -> &Reviewer {
        &self.0.parts.reviewer
    }

    /// A key from text, under this namespace.
    pub(crate) fn key(&self, text: &str) -> Result<Key, Error> {
        Ok(Key::from_text(text)?.within(self.namespace()))
    }

    /// The pair of jobs that keeps this one from running.
    pub(crate) fn overlap_of(&self, job: &Job) -> Option<&Overlap> {
        self.0.parts.overlaps.iter().find(|pair| pair.concerns(job))
    }
}

/// Purges batch by batch. A batch that the store does not do is tried again for as long as a claim would be.
async fn purge(store: &dyn Store, patience: Duration) -> Result<u64, StoreError> {
    const PAUSE: Duration = Duration::from_millis(50);
    let mut deleted = 0;
    let mut since = Instant::now();
    let mut size = BatchSize::default();
    loop {
        let began = Instant::now();
        match purge_batch(store, size.0).await {
            Ok(batch) => {
                deleted += batch;
                // One that is not full may have been shared with another collector.
                if batch == 0 {
                    return Ok(deleted);
                }
                let took = began.elapsed();
                if batch == u64::from(size.0) && !store.is_local() {
                    // Where there is one writer at a time, half of the time is for the others.
                    tokio::time::sleep(took).await;
                }
                size = size.after(took);
                since = Instant::now();
            }
            Err(error) if error.class != ErrorClass::Permanent && since.elapsed() < patience => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// How many jobs go in one batch of a purge. Nobody knows beforehand how many phases go with them: what a batch took tells
/// how large the next one may be.
struct BatchSize(u32);

impl Default for BatchSize {
    fn default() -> Self {
        Self(100)
    }
}

impl BatchSize {
    const LARGEST: u32 = 1_000;
    /// What a batch may take.
    const AIM: Duration = Duration::from_millis(200);

    fn after(&self, took: Duration) -> Self {
        let next = if took <= Self::AIM {
            self.0.saturating_mul(4)
        } else {
            let times = took.as_millis().div_ceil(Self::AIM.as_millis());
            self.0 / u32::try_from(times).unwrap_or(u32::MAX)
        };
        Self(next.clamp(1, Self::LARGEST))
    }
}

/// One batch, within a time of its own: a connection may be dead and nobody says so.
async fn purge_batch(store: &dyn Store, limit: u32) -> Result<u64, StoreError> {
    const LONGEST: Duration = Duration::from_secs(10);
    if store.is_local() {
        return store.purge(limit).await;
    }
    within(LONGEST, "purging expired keys", store.purge(limit)).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_grows_as_long_as_it_is_quick_and_shrinks_by_what_it_took() {
        let after = |size, millis| BatchSize(size).after(Duration::from_millis(millis)).0;
        assert_eq!([after(100, 0), after(400, 200), after(1_000, 10)], [400, 1_000, 1_000]);
        assert_eq!([after(1_000, 201), after(1_000, 1_999), after(100, 60_000)], [500, 100, 1]);
        assert_eq!(BatchSize(1).after(Duration::MAX).0, 1);
    }
}
