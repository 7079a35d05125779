//! A module that forbids and denies whatever it can.

#![forbid(unsafe_code, clippy::unwrap_used)]
#![deny(
    warnings,
    missing_docs,
    unused_qualifications,
    unused_results,
    unused_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    let_underscore_drop,
    rust_2018_idioms,
    nonstandard_style,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::cargo,
    clippy::shadow_reuse,
    clippy::shadow_same,
    clippy::shadow_unrelated,
    clippy::items_after_statements,
    clippy::absolute_paths,
    clippy::missing_trait_methods,
    clippy::str_to_string
)]
// These speak of the package, not of this module.
#![allow(clippy::multiple_crate_versions, clippy::cargo_common_metadata)]

use std::fmt::{self, Display, Formatter};

use idem_runtime::{Error, Idem, Key, KeyPart, OnError, Probe, Transact, idempotent, phase};
use sqlx::{Connection, Sqlite, SqliteConnection, Transaction, query};
use tokio::{task::yield_now, time::sleep};

/// A month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, KeyPart)]
pub struct Month {
    year: u16,
    month: u8,
}

/// A plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, KeyPart)]
pub enum Plan {
    /// Free.
    Free,
    /// Paid.
    #[key_part(rename = "paid")]
    Paid,
}

/// A service.
#[derive(Debug, Clone)]
pub struct Service {
    idem: Idem,
    tenant: String,
}

impl Service {
    /// Charges.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "strict:method:<self.tenant>:<id>", idem = self.idem, key_fn = charge_key)]
    pub async fn charge(&self, id: u64) -> Result<u64, Error> {
        use core::time::Duration;
        sleep(Duration::ZERO).await;
        Ok(id)
    }
}

/// Charges a month.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:month:<month>:<plan>", fingerprint = (amount), on_error = judge, key_fn = month_key)]
pub async fn charge_month(month: Month, plan: Plan, amount: u64) -> Result<(), Error> {
    yield_now().await;
    if amount > 10 { Key::from_text("").map(drop) } else { Ok(()) }
}

const fn judge(_: &Error) -> OnError {
    OnError::Release
}

/// Refunds, and asks first.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:asks:<id>", on_stale = probe(was_refunded), on_error = judge, key_fn = refund_key)]
pub async fn refund(id: u64, mut cents: Vec<u64>) -> Result<u64, Error> {
    cents.push(id);
    yield_now().await;
    Ok(id)
}

async fn was_refunded(id: &u64) -> Probe<u64> {
    yield_now().await;
    Probe::Happened(*id)
}

/// Prints, and asks first.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:asks_at_once:<text>", on_stale = probe(was_printed))]
pub fn print(text: &str) -> Result<usize, Error> {
    Ok(text.len())
}

const fn was_printed(text: &str) -> Probe<usize> {
    Probe::Happened(text.len())
}

/// Adds.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:sync:<id>", key_fn = add_key)]
pub fn add(id: u64, more: u64) -> Result<u64, Error> {
    Ok(id + more)
}

/// Turns the month on.
///
/// # Errors
///
/// Ours.
#[idempotent(key = "strict-turn:<month>", mode = "record_after", ttl = "forever")]
pub async fn turn(mut month: Month) -> Result<u16, Error> {
    month.year = 1999;
    yield_now().await;
    Ok(month.year)
}

/// Turns the month on at once.
///
/// # Errors
///
/// Ours.
#[idempotent(key = "strict-turn-now:<month>", mode = "record_after", ttl = "forever")]
pub fn turn_now(mut month: Month) -> Result<u16, Error> {
    month.year = 1999;
    Ok(month.year)
}

/// Two texts of one lifetime, of which the key holds one.
///
/// # Errors
///
/// If the job is refused.
#[idempotent(key = "strict:longer:<left>", key_fn = longer_key, replay = false)]
pub fn longer<'a>(left: &'a str, right: &'a str) -> Result<&'a str, Error> {
    Ok(if left.len() < right.len() { right } else { left })
}

/// Keeps.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:generic:<id>", key_fn = keep_key)]
pub async fn keep<T: KeyPart + Send + Sync>(id: T, mut values: Vec<u8>) -> Result<Vec<u8>, Error> {
    yield_now().await;
    values.push(1);
    Ok(values)
}

impl Service {
    /// Posts the tenant's share.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "strict:post:<self.tenant>:<id>", mode = "transactional", idem = self.idem, key_fn = post_key)]
    pub async fn post(&self, id: u64, tx: &mut Transaction<'_, Sqlite>) -> Result<u64, Failed> {
        let done = query("INSERT INTO postings VALUES (1)").execute(&mut **tx).await?;
        Ok(done.rows_affected() + id)
    }
}

/// Posts over a connection.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:inside:<id>", mode = "transactional", tx = conn, on_error = judge_failed)]
pub async fn inside(id: u64, mut list: Vec<u8>, mut conn: &mut SqliteConnection) -> Result<u64, Failed> {
    list.push(1);
    conn = &mut *conn;
    let done = query("INSERT INTO postings VALUES (1)").execute(conn).await?;
    Ok(done.rows_affected() + id)
}

/// Leaves its transaction alone.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:apart:<id>", mode = "transactional", tx = _tx)]
pub async fn apart<X: Transact>(id: u64, _tx: &mut X) -> Result<u64, Error> {
    yield_now().await;
    Ok(id)
}

/// What a posting can fail with.
#[derive(Debug)]
pub struct Failed;

impl Display for Failed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl From<sqlx::Error> for Failed {
    fn from(_: sqlx::Error) -> Self {
        Self
    }
}

impl From<Error> for Failed {
    fn from(_: Error) -> Self {
        Self
    }
}

const fn judge_failed(_: &Failed) -> OnError {
    OnError::Release
}

/// Does one thing after the other.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:phases:<id>", on_stale = "retry", key_fn = phases_key)]
pub async fn phases(id: u64, months: Vec<Month>) -> Result<u64, Error> {
    use core::time::Duration;
    let charged = phase!("charge", on_stale = "alert", async {
        use core::num::NonZero;
        sleep(Duration::ZERO).await;
        Ok(NonZero::new(id).map_or(0, NonZero::get))
    });
    phase!("mail", mode = "record_after", on_error = judge, async move {
        sleep(Duration::from_millis(charged)).await;
        Ok(())
    });
    let mut sum = charged;
    for month in months {
        let _: u16 = phase!("month", each = <month>, async { Ok(month.year) });
        sum = phase!("sum", each = <sum>, on_stale = probe(async || was_refunded(&sum).await), async {
            sum += 1;
            Ok(sum)
        });
    }
    let nothing = phase!("asks", on_stale = probe(nothing), on_error = judge, async { Ok(0) });
    Ok(sum + nothing)
}

async fn nothing() -> Probe<u64> {
    yield_now().await;
    Probe::DidNotHappen
}

/// Does one thing after the other, at once.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "strict:sync_phases:<id>")]
pub fn sync_phases(id: u64) -> Result<usize, Error> {
    let first = phase!("first", || one());
    let second = phase!("second", on_error = judge, move || {
        let key = Key::from_text("b")?;
        Ok(key.as_str().len())
    });
    let third: u64 = phase!("third", on_stale = probe(|| Probe::Happened(id)), || Ok(id));
    Ok(if third == 0 { first } else { second })
}

fn one() -> Result<usize, Error> {
    Key::from_text("a").map(|key| key.as_str().len())
}

/// Posts in transactions of its own, or of its caller's.
///
/// # Errors
///
/// When it is refused.
pub async fn post_twice(tx: &mut Transaction<'_, Sqlite>) -> Result<u64, Failed> {
    let posted = phase!("posted", mode = "transactional", tx = tx, async {
        let done = query("INSERT INTO postings VALUES (1)").execute(&mut **tx).await?;
        Ok(done.rows_affected())
    });
    let mut again = tx.begin().await?;
    phase!("apart", mode = "transactional", tx = again, async { Ok(()) });
    again.commit().await?;
    Ok(posted)
}

#[cfg(test)]
#[test]
fn strict_lints_are_satisfied() {
    let month = Month { year: 2024, month: 6 };
    let keys = [
        (month_key(&month, &Plan::Paid), "strict:month:2024,6:paid"),
        (month_key(&month, &Plan::Free), "strict:month:2024,6:Free"),
        (add_key(&3), "strict:sync:3"),
        (keep_key(&"k"), "strict:generic:k"),
    ];
    for (key, text) in keys {
        assert_eq!(key.map(|rendered| rendered.to_string()).ok().as_deref(), Some(text));
    }
}
