//! The hand-written pattern: insert first, run, update; each statement its own commit, through a pool.

use anyhow::ensure;
use sqlx::{PgPool, postgres::PgPoolOptions};

use crate::Pattern;

const TABLE: &str = "CREATE TABLE by_hand (
    key text PRIMARY KEY,
    status text NOT NULL DEFAULT 'processing',
    result text,
    created_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz
)";

/// The pool of an application, as sqlx sets it up.
pub(crate) struct ByHand(PgPool);

impl ByHand {
    pub(crate) async fn set_up(url: &str) -> anyhow::Result<Self> {
        let pool = PgPoolOptions::new().max_connections(16).connect(url).await?;
        sqlx::query("DROP TABLE IF EXISTS by_hand").execute(&pool).await?;
        sqlx::query(TABLE).execute(&pool).await?;
        Ok(Self(pool))
    }
}

impl Pattern for ByHand {
    async fn run(&self, id: u64) -> anyhow::Result<()> {
        let key = format!("bench:{id}");
        let claimed = sqlx::query("INSERT INTO by_hand (key) VALUES ($1) ON CONFLICT (key) DO NOTHING")
            .bind(&key)
            .execute(&self.0)
            .await?
            .rows_affected();
        if claimed == 0 {
            let (status, result): (String, Option<String>) =
                sqlx::query_as("SELECT status, result FROM by_hand WHERE key = $1")
                    .bind(&key)
                    .fetch_one(&self.0)
                    .await?;
            ensure!(status == "completed" && result.is_some(), "`{key}` is {status}");
            return Ok(());
        }
        // The job itself is empty.
        sqlx::query(
            "UPDATE by_hand SET status = 'completed', result = $2, completed_at = now() WHERE key = $1",
        )
        .bind(&key)
        .bind(id.to_string())
        .execute(&self.0)
        .await?;
        Ok(())
    }
}
