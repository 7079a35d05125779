//! Leases: none given, short ones, long ones. A claim is never abandoned at once, and never for ever.

use std::time::{Duration, Instant};

use idem_runtime::{Error, ErrorKind, Record, idempotent};
use tokio::time::sleep;

use super::{
    call::{executed, refused, took_over},
    gate::Gate,
    site::{Site, Worker},
};

#[idempotent(key = "a11-default:<id>", on_stale = "retry", idem = w.idem)]
async fn by_default(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("default");
    gate.pass().await;
    Ok(id)
}

#[idempotent(key = "a11-second:<id>", stale_after = "1s", heartbeat = false, on_stale = "retry", ttl = "30d", idem = w.idem)]
async fn a_second(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("second");
    gate.pass().await;
    Ok(id)
}

#[idempotent(key = "a11-alert:<id>", stale_after = "1s", heartbeat = false, idem = w.idem)]
async fn a_second_to_alert(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("alert");
    gate.pass().await;
    Ok(id)
}

#[idempotent(key = "a11-beat:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn a_second_with_heartbeat(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("beat");
    gate.pass().await;
    Ok(id)
}

/// More milliseconds than 31 bits hold.
#[idempotent(key = "a11-month:<id>", stale_after = "30d", on_stale = "retry", idem = w.idem)]
async fn thirty_days(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("days");
    gate.pass().await;
    Ok(id)
}

/// The longest that can be written.
#[idempotent(key = "a11-century:<id>", stale_after = "36500d", on_stale = "retry", idem = w.idem)]
async fn a_century(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect("century");
    gate.pass().await;
    Ok(id)
}

const DAY: Duration = Duration::from_hours(24);

fn left(row: &Record) -> Duration {
    Duration::from_micros(u64::try_from(row.lease_until.expect("a lease") - row.now).unwrap_or(0))
}

/// Whoever comes is told to come back when the lease ends, and no earlier or later.
fn waits(error: &Error, lease: Duration) {
    let retry_after = error.retry_after().expect("a busy key");
    assert!(retry_after <= lease, "{retry_after:?}");
    assert!(!retry_after.is_zero(), "not at once");
    assert!(retry_after + Duration::from_secs(30) > lease, "{retry_after:?} of {lease:?}");
}

macro_rules! lease {
    ($w:ident, $job:ident, $key:literal, $lease:expr) => {{
        let gate = Gate::new();
        let mut first = Box::pin(executed($job(&$w, 1, &gate)));
        gate.stops(&mut first).await;
        let row = $w.row($key).await;
        let left = left(&row);
        assert!(left <= $lease && left + Duration::from_secs(30) > $lease, "{left:?}");
        waits(&refused(ErrorKind::InProgress, $job(&$w, 1, &gate)).await, $lease);
        gate.open();
        assert_eq!(first.await, 1);
    }};
}

pub(super) async fn a11_a_lease_is_as_long_as_it_says(site: &Site) {
    let w = site.worker().await;
    lease!(w, by_default, "a11-default:1", Duration::from_mins(1));
    lease!(w, thirty_days, "a11-month:1", 30 * DAY);
    lease!(w, a_century, "a11-century:1", 36_500 * DAY);
}

macro_rules! takeover {
    ($site:ident, $w:ident, $job:ident, $key:literal) => {{
        let (gate, heir) = (Gate::new(), Gate::new());
        let mut first = Box::pin(refused(ErrorKind::ClaimLost, $job(&$w, 1, &gate)));
        gate.stops(&mut first).await;
        refused(ErrorKind::InProgress, $job(&$w, 1, &gate)).await;
        $site.end_lease(&$w, $key).await;
        heir.open();
        assert_eq!(took_over($job(&$w, 1, &heir)).await, 1);
        gate.open();
        first.await;
    }};
}

pub(super) async fn a11_whatever_its_length_a_lease_can_be_taken_over_at_its_end(site: &Site) {
    let w = site.worker().await;
    takeover!(site, w, by_default, "a11-default:1");
    takeover!(site, w, thirty_days, "a11-month:1");
    takeover!(site, w, a_century, "a11-century:1");
}

pub(super) async fn a11_a_lease_of_a_second_lasts_a_second(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    let (gate, heir) = (Gate::new(), Gate::new());
    heir.open();
    let mut first = Box::pin(a_second(&w, 1, &gate));
    let began = Instant::now();
    gate.stops(&mut first).await;
    sleep(Duration::from_millis(100)).await;
    let taken = loop {
        let row = w.row("a11-second:1").await;
        match a_second(&other, 1, &heir).await {
            Ok(_) => break began.elapsed(),
            Err(error) if error.kind() == ErrorKind::InProgress => {
                assert!(error.retry_after().expect("a busy key") <= Duration::from_secs(1));
                assert!(left(&row) <= Duration::from_secs(1));
                sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "and not for as long as the ttl");
    };
    assert!(taken >= Duration::from_millis(999), "not before its end: {taken:?}");
    assert_eq!(site.effects("second"), 2);
}

pub(super) async fn a11_a_lease_of_a_second_ends_for_a_person(site: &Site) {
    let w = site.worker().await;
    let gate = Gate::new();
    let mut first = Box::pin(executed(a_second_to_alert(&w, 1, &gate)));
    gate.stops(&mut first).await;
    refused(ErrorKind::InProgress, a_second_to_alert(&w, 1, &gate)).await;
    site.end_lease(&w, "a11-alert:1").await;
    refused(ErrorKind::NeedsReview, a_second_to_alert(&w, 1, &gate)).await;
    assert_eq!(site.effects("alert"), 1);
    gate.open();
    assert_eq!(first.await, 1, "nobody took it, so its late completion counts");
}

pub(super) async fn a11_a_living_holder_outlasts_its_lease(site: &Site) {
    let (w, other, gate) = (site.worker().await, site.worker().await, Gate::new());
    let first = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(a_second_with_heartbeat(&w, 1, &gate)).await }
    });
    gate.arrived().await;
    let end = Instant::now() + Duration::from_millis(2_500);
    while Instant::now() < end {
        refused(ErrorKind::InProgress, a_second_with_heartbeat(&other, 1, &gate)).await;
        sleep(Duration::from_millis(100)).await;
    }
    gate.open();
    assert_eq!(first.await.expect("no panic"), 1);
    assert_eq!(site.effects("beat"), 1);
}

/// As another program, or a hand, may have written it.
pub(super) async fn a11_a_claim_without_an_end_is_neither_free_nor_held_for_ever(site: &Site) {
    let w = site.worker().await;
    let (gate, heir) = (Gate::new(), Gate::new());
    heir.open();
    let mut first = Box::pin(by_default(&w, 1, &gate));
    gate.stops(&mut first).await;

    site.set("a11-default:1", "lease_until = NULL").await;
    waits(&refused(ErrorKind::InProgress, by_default(&w, 1, &heir)).await, Duration::from_mins(15));
    site.set("a11-default:1", "lease_until = 0").await;
    assert_eq!(took_over(by_default(&w, 1, &heir)).await, 1);
}
