//! Each argument of the attribute, alone and together.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

#[derive(serde::Serialize)]
struct Amount {
    cents: u64,
}

#[idempotent(
    key = "arguments:lock:<id>",
    mode = "lock_first",
    stale_after = "2s",
    heartbeat = true,
    on_stale = "retry",
    max_takeovers = 3,
    on_error = "by_mark",
    on_busy = "wait",
    wait_for = "5s",
    ttl = "30d",
    fingerprint = (amount.cents, note),
    replay = true,
    name = "arguments.lock",
    key_fn = lock_key,
    allow_overlap(after),
    idem = memory(),
)]
async fn lock(id: u8, amount: Amount, note: &str) -> Result<u64, Error> {
    Ok(amount.cents + u64::from(id) + note.len() as u64)
}

#[idempotent(key = "arguments:after:<id>", mode = "record_after", on_error = "record", ttl = "forever", idem = memory())]
fn after(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "arguments:steady:<id>", heartbeat = false, stale_after = "1d", on_stale = "alert", idem = memory())]
fn steady(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "arguments:waits:<id>", on_busy = "wait", on_error = "hold", idem = memory())]
fn waits(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "arguments:volatile:<attempt>:<job.job_id>", allow_volatile(attempt, job.job_id), on_error = "release", idem = memory())]
fn volatile(attempt: u8, job: Job) -> Result<u8, Error> {
    Ok(attempt + job.job_id)
}

#[derive(Clone, Copy)]
struct Job {
    job_id: u8,
}

#[idempotent(key = "arguments:month:<month>", mode = "record_after", allow_short_ttl, idem = memory())]
fn short(month: u8) -> Result<u8, Error> {
    Ok(month)
}

#[idempotent(
    key = "arguments:tuple:<pair.0>",
    fingerprint = (pair.1.0),
    allow_overlap(crate::nowhere, self::after),
    allow_overlap(super::nowhere),
    on_busy = "error",
    idem = memory(),
)]
fn tuple(pair: (u8, (u8, u8))) -> Result<u8, Error> {
    Ok(pair.1.1)
}

#[tokio::test]
async fn all_arguments_are_taken() {
    assert_eq!(once(async || lock(1, Amount { cents: 5 }, "x").await).await, 7);
    assert_eq!(lock_key(&1).expect("a key").to_string(), "arguments:lock:1");
    assert_eq!(once_sync(|| after(1)), 1);
    assert_eq!(once_sync(|| steady(1)), 1);
    assert_eq!(once_sync(|| waits(1)), 1);
    assert_eq!(once_sync(|| volatile(1, Job { job_id: 2 })), 3);
    assert_eq!(once_sync(|| short(1)), 1);
    assert_eq!(once_sync(|| tuple((1, (2, 3)))), 3);
}
