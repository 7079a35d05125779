//! How far a job has come: its row and those of its phases, as they are committed.

use std::sync::Arc;

use crate::{
    key::{Key, long_phases_of, phases_of},
    record::Record,
    resolve::patiently,
    service::{Failure, Service},
};

/// The most phases that are read at once.
const PAGE: u32 = 1_000;

/// A job's row with those of its phases. Where the keys of both are too long to be stored as they are, the whole key
/// tells which those are.
pub(crate) async fn with_phases(service: &Service, key: &Key, mut record: Record) -> Result<Record, Failure> {
    record.phases = all_between(service, phases_of(&record.key)).await?;
    if let Some((after, before)) = long_phases_of(&record.key) {
        // Keys of other jobs are among them, and there is no end to these.
        let mut others = between(service, after, before).await?;
        others.retain(|other| other.is_long_phase_of(&record, key));
        record.phases.append(&mut others);
    }
    record.phases.sort_by_key(|phase| (phase.created_at, phase.fence));
    Ok(record)
}

/// A row as it is committed, past all requests that wait for its key: they may wait for the caller.
pub(crate) async fn look_aside(service: &Service, key: &Arc<str>) -> Result<Option<Record>, Failure> {
    let (store, key) = (Arc::clone(service.store()), [Arc::clone(key)]);
    let until = (!store.is_local()).then(|| service.patience(None).until);
    let reading = async move { patiently(until, || store.read(&key)).await };
    let rows = service.complete(reading).await?.map_err(Failure::Store)?.answer;
    Ok(rows.into_iter().next().flatten())
}

/// All rows whose keys lie between two.
async fn all_between(
    service: &Service,
    (mut after, before): (String, String),
) -> Result<Vec<Record>, Failure> {
    let mut rows = Vec::new();
    loop {
        let page = between(service, after, before.clone()).await?;
        let is_full = page.len() >= PAGE as usize;
        rows.extend(page);
        match rows.last() {
            Some(last) if is_full => after = last.key.clone(),
            _ => return Ok(rows),
        }
    }
}

/// The first of them.
async fn between(service: &Service, after: String, before: String) -> Result<Vec<Record>, Failure> {
    let store = Arc::clone(service.store());
    let until = (!store.is_local()).then(|| service.patience(None).until);
    let reading = async move { patiently(until, || store.between(&after, &before, PAGE)).await };
    Ok(service.complete(reading).await?.map_err(Failure::Store)?.answer)
}
