//! The library, with nothing set.

use idem_runtime::{Idem, idempotent};
use sqlx::{AssertSqlSafe, Connection};

use crate::Pattern;

/// A job with an empty body.
#[idempotent(key = "bench:<id>", idem = idem)]
async fn job(id: u64, idem: &Idem) -> Result<u64, idem_runtime::Error> {
    let _ = idem;
    Ok(id)
}

/// The library on a table of its own.
pub(crate) struct Ours(Idem);

impl Ours {
    pub(crate) async fn set_up(url: &str) -> anyhow::Result<Self> {
        // Keys of an earlier run would be repeats.
        let mut connection = sqlx::PgConnection::connect(url).await?;
        for table in ["bench_keys", "bench_keys_audit", "bench_keys_schema"] {
            sqlx::query(AssertSqlSafe(format!("DROP TABLE IF EXISTS {table}")))
                .execute(&mut connection)
                .await?;
        }
        Ok(Self(Idem::builder().url(url).table("bench_keys").connect().await?))
    }
}

impl Pattern for Ours {
    async fn run(&self, id: u64) -> anyhow::Result<()> {
        let result = job(id, &self.0).await?;
        anyhow::ensure!(result == id, "another job's result");
        Ok(())
    }
}
