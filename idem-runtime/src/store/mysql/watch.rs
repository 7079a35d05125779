//! What a watcher and a person look for.

use super::{MySqlStore, READING};
use crate::{
    record::{Record, micros},
    store::{
        Audited, StoreError, Watch,
        sql::{Cells, audited, readable, record},
    },
};

const WATCHING: &str = "looking for stale claims";

impl MySqlStore {
    pub(super) async fn watched(&self, watch: &Watch) -> Result<Vec<Record>, StoreError> {
        let Watch { foreign_stale_after, untold, limit } = *watch;
        let rows = self.rows(WATCHING, |sql| {
            let query = sqlx::query(&sql.watch).bind(limit);
            query.bind(micros(foreign_stale_after)).bind(limit).bind(untold).bind(limit)
        });
        let read = |row| {
            let mut cells = Cells::of(row);
            let key = cells.next()?;
            let _floor: i64 = cells.next()?;
            record(&mut cells, key)
        };
        Ok(readable(rows.await?.iter().map(read)))
    }

    pub(super) async fn audit_of(&self, key: &str) -> Result<Vec<Audited>, StoreError> {
        let rows = self.rows(READING, |sql| sqlx::query(&sql.audited).bind(key.to_owned())).await?;
        rows.iter().map(audited).collect()
    }
}
