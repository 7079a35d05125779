//! What goes: expired rows and forgotten ones, each with its phases.

use std::{collections::HashSet, time::Duration};

use sqlx::{Connection, MySqlConnection, Row};

use super::{
    MySqlStore, audit_statement, end, probe,
    retry::{PAUSES, Retry, fault},
    server::Server,
    statements::Statements,
};
use crate::{
    record::Version,
    store::{
        Audit, ErrorClass, StoreError,
        sql::{Cells, bind_expected, to_json},
    },
};

const PURGING: &str = "purging expired keys";
const FORGETTING: &str = "forgetting a key";

/// A row that goes: its key, and its fence.
type Going = (String, i64);

impl MySqlStore {
    /// Finds what has expired, and deletes what of it nobody holds locked.
    pub(super) async fn purge_some(&self, limit: u32) -> Result<u64, StoreError> {
        let mut reach = limit;
        for pause in [Duration::ZERO].into_iter().chain(PAUSES) {
            tokio::time::sleep(pause).await;
            let rows = self.rows(PURGING, |sql| sqlx::query(&sql.expired).bind(reach)).await?;
            if rows.is_empty() {
                break;
            }
            let expired: Vec<String> =
                rows.iter().map(|row| Cells::of(row).next()).collect::<Result<_, _>>()?;
            match self.purge_free(&to_json(PURGING, &expired)?, limit).await {
                // Somebody holds them all, was there first or came in between; there may be others behind them.
                Ok(0) => reach = reach.saturating_mul(4),
                Err(error) if error.class == ErrorClass::Locked => {}
                done => return done,
            }
        }
        Ok(0)
    }

    async fn purge_free(&self, expired: &str, limit: u32) -> Result<u64, StoreError> {
        let mut retry = Retry::default();
        loop {
            let (mut held, server) = self.take(PURGING).await?;
            let done = purge(held.connection(), self.statements(server), expired, limit).await;
            let fault = fault(&done);
            let done = held.settle(PURGING, done);
            if !retry.after(fault).await {
                return done;
            }
        }
    }

    pub(super) async fn forget_one(
        &self,
        key: &str,
        expected: &Version,
        audit: &Audit,
    ) -> Result<bool, StoreError> {
        let mut retry = Retry::default();
        loop {
            let (mut held, server) = self.take(FORGETTING).await?;
            let sql = self.statements(server);
            let done = forget(held.connection(), sql, server, key, expected, audit).await;
            let fault = fault(&done);
            let done = held.settle(FORGETTING, done);
            if !retry.after(fault).await {
                return done;
            }
        }
    }
}

/// Deletes jobs with their phases. Nobody writes a phase while its job's row is locked, and a job of which somebody holds
/// a phase stays.
async fn purge(
    connection: &mut MySqlConnection,
    sql: &Statements,
    expired: &str,
    limit: u32,
) -> Result<u64, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let done = async {
        let purgeable = sqlx::query(&sql.purgeable).bind(expired).bind(limit);
        let rows = purgeable.fetch_all(&mut *transaction).await?;
        let mut jobs: Vec<Going> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, sqlx::Error>>()?;
        let mut phases = phases_of(&mut transaction, sql, &jobs).await?;
        if !phases.is_empty() {
            let keys = json(phases.iter().map(|(_, (key, _))| key))?;
            let rows = sqlx::query(&sql.free).bind(keys).fetch_all(&mut *transaction).await?;
            let free: HashSet<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            let held = phases.iter().filter(|(_, (key, _))| !free.contains(key));
            let stay: HashSet<String> = held.map(|(job, _)| job.clone()).collect();
            jobs.retain(|(job, _)| !stay.contains(job));
            phases.retain(|(job, _)| !stay.contains(job));
        }
        let count = jobs.len() as u64;
        jobs.extend(phases.into_iter().map(|(_, phase)| phase));
        delete(&mut transaction, sql, &jobs).await?;
        Ok(count)
    };
    let done = done.await;
    end(transaction, done).await
}

async fn forget(
    connection: &mut MySqlConnection,
    sql: &Statements,
    server: Server,
    key: &str,
    expected: &Version,
    audit: &Audit,
) -> Result<bool, sqlx::Error> {
    probe(connection, sql, server, &[key]).await?;
    let mut transaction = connection.begin().await?;
    let done = async {
        let forget = bind_expected(sqlx::query(&sql.forget), key, expected);
        if forget.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        let mut gone = vec![(key.to_owned(), expected.fence)];
        let phases = phases_of(&mut transaction, sql, &gone).await?;
        gone.extend(phases.into_iter().map(|(_, phase)| phase));
        delete(&mut transaction, sql, &gone).await?;
        audit_statement(sql, key, audit).execute(&mut *transaction).await?;
        Ok(true)
    };
    let done = done.await;
    end(transaction, done).await
}

/// The phases of jobs, each behind the key of its job.
async fn phases_of(
    connection: &mut MySqlConnection,
    sql: &Statements,
    jobs: &[Going],
) -> Result<Vec<(String, Going)>, sqlx::Error> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let keys = json(jobs.iter().map(|(key, _)| key))?;
    let rows = sqlx::query(&sql.phases).bind(keys).fetch_all(connection).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?)))).collect()
}

/// Deletes rows, and lifts the floor over their fences.
async fn delete(
    connection: &mut MySqlConnection,
    sql: &Statements,
    gone: &[Going],
) -> Result<(), sqlx::Error> {
    let Some(highest) = gone.iter().map(|(_, fence)| *fence).max() else { return Ok(()) };
    let delete = sqlx::query(&sql.delete).bind(json(gone.iter().map(|(key, _)| key))?);
    delete.execute(&mut *connection).await?;
    let raise = sqlx::query(&sql.raise_floor).bind(highest).bind(highest);
    raise.execute(connection).await.map(drop)
}

fn json<'a>(keys: impl Iterator<Item = &'a String>) -> Result<String, sqlx::Error> {
    serde_json::to_string(&keys.collect::<Vec<_>>()).map_err(|error| sqlx::Error::Encode(error.into()))
}
