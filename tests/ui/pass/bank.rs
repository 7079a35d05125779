//! A database for the jobs that run in a transaction: their keys lie in it, and a table of postings.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use idem_runtime::{Idem, Outcome, with_outcome};
use sqlx::{Connection, Sqlite, SqliteConnection, Transaction};
use tempfile::TempDir;

/// The one database of this process, there while a test holds it.
pub(super) struct Bank {
    idem: Idem,
    url: String,
    _folder: TempDir,
}

static OPEN: Mutex<Weak<Bank>> = Mutex::new(Weak::new());

impl Bank {
    pub(super) fn open() -> Arc<Self> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bank) = open.upgrade() {
            return bank;
        }
        let thread = std::thread::spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(Self::build())
        });
        let bank = Arc::new(thread.join().expect("a thread to connect on"));
        *open = Arc::downgrade(&bank);
        bank
    }

    async fn build() -> Self {
        let folder = TempDir::with_prefix("idem-pass-").expect("a temporary folder");
        let url = format!("sqlite://{}", folder.path().join("bank.db").display());
        let idem = Idem::connect(&url).await.expect("a database");
        let bank = Self { idem, url, _folder: folder };
        let create = "CREATE TABLE postings (id INTEGER NOT NULL)";
        sqlx::raw_sql(create).execute(&mut bank.connection().await).await.expect("a table");
        bank
    }

    /// For `idem = Bank::idem()`.
    pub(super) fn idem() -> Idem {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.upgrade().expect("a bank that the test has opened").idem.clone()
    }

    pub(super) async fn connection(&self) -> SqliteConnection {
        SqliteConnection::connect(&self.url).await.expect("a connection")
    }

    /// Calls in two transactions: the first call runs the body, the second gets its result. Gives that, and the rows
    /// that the body posted.
    pub(super) async fn once<T: PartialEq + Debug, E: Debug>(
        &self,
        call: impl AsyncFn(&mut Transaction<'_, Sqlite>) -> Result<T, E>,
    ) -> (T, i64) {
        let (first, posted) = self.run(Outcome::Executed, &call).await;
        let (second, repeated) = self.run(Outcome::Replayed, &call).await;
        assert_eq!(first, second);
        assert_eq!(repeated, 0, "a repeat posts nothing");
        (first, posted)
    }

    async fn run<T: Debug, E: Debug>(
        &self,
        expected: Outcome,
        call: impl AsyncFn(&mut Transaction<'_, Sqlite>) -> Result<T, E>,
    ) -> (T, i64) {
        let mut connection = self.connection().await;
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
        let before = postings(&mut tx).await;
        let (returned, outcome) = with_outcome(call(&mut tx)).await;
        assert_eq!(outcome, Some(expected), "{returned:?}");
        let posted = postings(&mut tx).await - before;
        tx.commit().await.expect("a commit");
        (returned.expect("a result"), posted)
    }
}

async fn postings(connection: &mut SqliteConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM postings").fetch_one(connection).await.expect("a count")
}
