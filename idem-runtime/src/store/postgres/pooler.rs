//! Whether a pooler stands between us and the server and gives each transaction another server process. Then a
//! connection has no session of its own, and a statement that was prepared in one transaction is not there in the
//! next, or is somebody else's.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, Row, postgres::PgConnectOptions, raw_sql};

use crate::store::{
    StoreError,
    sql::{Connections, explain},
};

const LOOKING: &str = "looking for a connection pooler";

/// How often each of two connections is asked for its server process.
const LOOKS: usize = 4;

/// Sent as it is: nothing may be prepared before this is answered.
const PROCESS: &str = "
    SELECT pg_backend_pid(), (date_part('epoch', clock_timestamp()) * 1000000)::bigint,
        (SELECT (date_part('epoch', backend_start) * 1000000)::bigint FROM pg_stat_activity
            WHERE pid = pg_backend_pid())";

/// What is known about it.
#[derive(Debug)]
pub(super) struct Pooler(AtomicBool);

impl Pooler {
    /// One that the URL tells of, by turning the cache of prepared statements off.
    pub(super) fn of(options: &PgConnectOptions) -> Self {
        let url = options.to_url_lossy();
        let told = url.query_pairs().any(|(name, value)| name == "statement-cache-capacity" && value == "0");
        Self(AtomicBool::new(told))
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether an error shows one that nobody has seen before. What was sent has not been carried out.
    pub(super) fn shows_in(&self, error: &sqlx::Error) -> bool {
        let sqlx::Error::Database(error) = error else { return false };
        // A prepared statement that is not there, or is there already. Nobody but a pooler deals with the statements
        // of our connections.
        let shows = matches!(error.code().as_deref(), Some("26000" | "42P05"));
        shows && self.found()
    }

    /// Looks for one, unless it is known to be there.
    pub(super) async fn look(
        &self,
        first: &mut PgConnection,
        connections: &Connections<Postgres>,
    ) -> Result<(), StoreError> {
        if self.is_there() {
            return Ok(());
        }
        let before = process(first).await.map_err(|error| explain::<Postgres>(LOOKING, error))?;
        let mut second = connections.open(LOOKING).await?;
        let stands = stands_between(before, first, &mut second).await;
        // Nothing was left behind on it.
        let _ = second.close().await;
        if stands.map_err(|error| explain::<Postgres>(LOOKING, error))? {
            self.found();
        }
        Ok(())
    }

    /// Whether this is news.
    fn found(&self) -> bool {
        let news = !self.0.swap(true, Ordering::Relaxed);
        if news {
            tracing::info!(
                "a connection pooler stands before Postgres: each statement is sent in a transaction of its own, and \
                 none is kept prepared; `statement-cache-capacity=0` in the URL says so from the start"
            );
        }
        news
    }
}

/// A server process, with the moments of the question and of its beginning.
struct Process {
    id: i32,
    now: i64,
    began: Option<i64>,
}

/// Two connections without a pooler have a process each, for as long as they live, and the second's began after the
/// first was asked. A pooler hands out the one that was free last, or one it has had for long, or now this and now
/// that.
async fn stands_between(
    before: Process,
    first: &mut PgConnection,
    second: &mut PgConnection,
) -> Result<bool, sqlx::Error> {
    let other = process(second).await?;
    let is_old = other.began.is_some_and(|began| began < before.now);
    if is_old || other.id == before.id {
        return Ok(true);
    }
    for _ in 1..LOOKS {
        if process(first).await?.id != before.id || process(second).await?.id != other.id {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn process(connection: &mut PgConnection) -> Result<Process, sqlx::Error> {
    let row = raw_sql(PROCESS).fetch_one(connection).await?;
    Ok(Process { id: row.try_get(0)?, now: row.try_get(1)?, began: row.try_get(2)? })
}
