//! A fingerprint is checked on every path that answers for a key, and is the same for equal arguments.

use std::{collections::HashMap, fmt, sync::Arc};

use idem_runtime::{Error, ErrorKind, KeyPart, idempotent, record::Status};
use idem_tests::{Child, child::Parent};
use tokio::sync::Barrier;

use super::{
    call::{Fault, executed, failed, refused, replayed, took_over},
    gate::Gate,
    site::{Site, Worker, at_rest},
};

/// Its key text says nothing of who it is.
#[derive(Clone, Copy, Debug, KeyPart)]
#[key_part(display)]
struct Customer {
    id: u32,
}

impl fmt::Display for Customer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Customer")
    }
}

const FIRST: Customer = Customer { id: 1049 };
const SECOND: Customer = Customer { id: 1052 };

#[idempotent(key = "a5-bill:<path>:<customer>", fingerprint = (customer.id), idem = w.idem)]
async fn bill(w: &Worker, path: &str, customer: Customer) -> Result<String, Error> {
    w.effect(path);
    Ok(format!("the secret of {}", customer.id))
}

#[idempotent(
    key = "a5-slow:<path>:<customer>",
    fingerprint = (customer.id),
    stale_after = "1s",
    heartbeat = false,
    on_stale = "retry",
    idem = w.idem
)]
async fn slow_bill(w: &Worker, path: &str, customer: Customer, gate: &Gate) -> Result<String, Error> {
    w.effect(path);
    gate.pass().await;
    Ok(format!("the secret of {}", customer.id))
}

/// The call is refused, leaves the row as it is, and says nothing of the first customer.
async fn is_mismatched<T: fmt::Debug>(w: &Worker, key: &str, call: impl Future<Output = Result<T, Error>>) {
    let before = at_rest(w.row(key).await);
    let error = refused(ErrorKind::FingerprintMismatch, call).await;
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    assert_eq!(error.key().expect("of a key").as_str(), key);
    assert!(!error.is_retryable());
    assert_eq!(at_rest(w.row(key).await), before);
}

pub(super) async fn a5_i_a_completed_key_is_checked(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    executed(bill(&w, "done", FIRST)).await;
    is_mismatched(&w, "a5-bill:done:Customer", bill(&w, "done", SECOND)).await;
    is_mismatched(&w, "a5-bill:done:Customer", bill(&other, "done", SECOND)).await;
    assert_eq!(replayed(bill(&other, "done", FIRST)).await, "the secret of 1049");
    assert_eq!(site.ledger.total(), 1);
}

pub(super) async fn a5_ii_a_running_key_is_checked(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    let gate = Gate::new();
    let first = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { slow_bill(&w, "running", FIRST, &gate).await }
    });
    gate.arrived().await;
    for w in [&w, &other] {
        is_mismatched(w, "a5-slow:running:Customer", slow_bill(w, "running", SECOND, &gate)).await;
    }
    refused(ErrorKind::InProgress, slow_bill(&other, "running", FIRST, &gate)).await;
    gate.open();
    assert_eq!(first.await.expect("no panic").expect("a value"), "the secret of 1049");
    is_mismatched(&w, "a5-slow:running:Customer", slow_bill(&w, "running", SECOND, &gate)).await;
    assert_eq!(site.ledger.total(), 1);
}

pub(super) async fn a5_iii_the_loser_of_a_race_is_checked(site: &Site) {
    let workers = [site.worker().await, site.worker().await];
    for round in 0..40 {
        let path = format!("race-{round}");
        // The same worker in every other round: there the claims meet in one queue.
        let pair = [workers[0].clone(), workers[round % 2].clone()];
        let start = Arc::new(Barrier::new(2));
        let calls = pair.into_iter().zip([FIRST, SECOND]).map(|(w, customer)| {
            let (path, start) = (path.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                bill(&w, &path, customer).await
            })
        });
        let mut values = Vec::new();
        let mut errors = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            match call.await.expect("no panic") {
                Ok(value) => values.push(value),
                Err(error) => errors.push(error.kind()),
            }
        }
        assert_eq!((values.len(), &errors[..]), (1, &[ErrorKind::FingerprintMismatch][..]), "{values:?}");
        assert_eq!(site.effects(&path), 1);
    }
}

pub(super) async fn a5_iv_a_takeover_is_checked(site: &Site) {
    let w = site.worker().await;
    let (gate, key) = (Gate::new(), "a5-slow:stale:Customer");
    let mut first = Box::pin(slow_bill(&w, "stale", FIRST, &gate));
    gate.stops(&mut first).await;
    site.end_lease(&w, key).await;
    is_mismatched(&w, key, slow_bill(&w, "stale", SECOND, &gate)).await;

    let heir = Gate::new();
    heir.open();
    assert_eq!(took_over(slow_bill(&w, "stale", FIRST, &heir)).await, "the secret of 1049");
    assert_eq!(site.ledger.total(), 2);
}

pub(super) async fn a5_v_a_repeat_in_the_same_worker_is_checked(site: &Site) {
    let w = site.worker().await;
    executed(bill(&w, "repeat", FIRST)).await;
    for _ in 0..3 {
        replayed(bill(&w, "repeat", FIRST)).await;
        is_mismatched(&w, "a5-bill:repeat:Customer", bill(&w, "repeat", SECOND)).await;
    }
    assert_eq!(site.ledger.total(), 1);
}

#[idempotent(
    key = "a5-wait:<path>:<customer>",
    fingerprint = (customer.id),
    on_busy = "wait",
    wait_for = "60s",
    idem = w.idem
)]
async fn waiting_bill(w: &Worker, path: &str, customer: Customer, gate: &Gate) -> Result<String, Error> {
    w.effect(path);
    gate.pass().await;
    Ok(format!("the secret of {}", customer.id))
}

pub(super) async fn a5_a_waiting_call_is_checked_before_it_waits(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let call = |customer| {
        let (w, gate) = (w.clone(), gate.clone());
        tokio::spawn(async move { waiting_bill(&w, "wait", customer, &gate).await })
    };
    let first = call(FIRST);
    gate.arrived().await;
    let error = call(SECOND).await.expect("no panic").expect_err("another customer");
    assert_eq!(error.kind(), ErrorKind::FingerprintMismatch);
    let same = call(FIRST);
    gate.open();
    let values =
        (first.await.expect("no panic").expect("run"), same.await.expect("no panic").expect("replayed"));
    assert_eq!(values.0, values.1);
    assert_eq!(site.ledger.total(), 1);
}

#[idempotent(key = "a5-review:<path>:<customer>", fingerprint = (customer.id), idem = w.idem)]
async fn doubtful_bill(w: &Worker, path: &str, customer: Customer) -> Result<String, Fault> {
    w.effect(path);
    Err(Fault::Own(format!("the secret of {} timed out", customer.id)))
}

pub(super) async fn a5_a_key_in_review_is_checked(site: &Site) {
    let (w, key) = (site.worker().await, "a5-review:doubt:Customer");
    failed(doubtful_bill(&w, "doubt", FIRST)).await;
    let other = async || doubtful_bill(&w, "doubt", SECOND).await.map_err(Fault::idem);
    is_mismatched(&w, key, other()).await;
    refused(ErrorKind::NeedsReview, doubtful_bill(&w, "doubt", FIRST)).await;
    w.row_that_is(key, &Status::NeedsReview).await;
    is_mismatched(&w, key, other()).await;
    assert_eq!(site.ledger.total(), 1);
}

#[idempotent(key = "a5-failed:<path>:<customer>", fingerprint = (customer.id), on_error = "record", idem = w.idem)]
async fn impossible_bill(w: &Worker, path: &str, customer: Customer) -> Result<String, Fault> {
    w.effect(path);
    Err(Fault::Own(format!("the secret of {} has no account", customer.id)))
}

pub(super) async fn a5_a_failed_key_is_checked(site: &Site) {
    let (w, key) = (site.worker().await, "a5-failed:never:Customer");
    failed(impossible_bill(&w, "never", FIRST)).await;
    let other = impossible_bill(&w, "never", SECOND);
    is_mismatched(&w, key, async { other.await.map_err(Fault::idem) }).await;
    refused(ErrorKind::PreviouslyFailed, impossible_bill(&w, "never", FIRST)).await;
    assert_eq!(site.ledger.total(), 1);
}

#[idempotent(key = "a5-mail:<path>:<customer>", mode = "record_after", fingerprint = (customer.id), idem = w.idem)]
async fn mail(w: &Worker, path: &str, customer: Customer) -> Result<String, Error> {
    w.effect(path);
    Ok(format!("the secret of {}", customer.id))
}

pub(super) async fn a5_a_recorded_effect_is_checked(site: &Site) {
    let w = site.worker().await;
    executed(mail(&w, "sent", FIRST)).await;
    is_mismatched(&w, "a5-mail:sent:Customer", mail(&w, "sent", SECOND)).await;
    replayed(mail(&w, "sent", FIRST)).await;
    assert_eq!(site.ledger.total(), 1);
}

type Lines = HashMap<String, u32>;

#[idempotent(key = "a5-order:<id>", fingerprint = (lines), idem = w.idem)]
async fn order(w: &Worker, id: u32, lines: Lines) -> Result<usize, Error> {
    w.effect("order");
    Ok(lines.len())
}

fn lines(numbers: impl Iterator<Item = u32>) -> Lines {
    numbers.map(|n| (format!("article {n}"), n)).collect()
}

pub(super) async fn a5_the_order_of_a_map_does_not_matter(site: &Site) {
    let w = site.worker().await;
    executed(order(&w, 1, lines(0..50))).await;
    replayed(order(&w, 1, lines((0..50).rev()))).await;
    refused(ErrorKind::FingerprintMismatch, order(&w, 1, lines(0..51))).await;
    assert_eq!(site.ledger.total(), 1);
}

pub(super) async fn a5_the_order_of_a_map_does_not_matter_in_another_process(site: &Site) {
    let w = site.worker().await;
    executed(order(&w, 2, lines(0..50))).await;
    let mut child = Child::spawn(&mut site.child("cases::a5::another_process"));
    assert_eq!(child.expect("replayed"), "50");
    assert!(child.wait().success(), "{}", child.transcript());
    assert_eq!(site.ledger.total(), 1);
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn another_process() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    let count = replayed(order(&w, 2, lines((0..50).rev()))).await;
    parent.say(&format!("replayed {count}"));
}

/// Amounts beyond what a float or 64 bits hold.
#[idempotent(key = "a5-wei:<id>", fingerprint = (amount, rate), idem = w.idem)]
async fn transfer(w: &Worker, id: u32, amount: u128, rate: f64) -> Result<u128, Error> {
    w.effect("transfer");
    Ok(amount).inspect(|_| tracing::trace!(rate))
}

pub(super) async fn a5_every_digit_counts(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    let first = (u128::MAX, 0.1 + 0.2);
    assert_eq!(executed(transfer(&w, 1, first.0, first.1)).await, u128::MAX);
    replayed(transfer(&other, 1, first.0, first.1)).await;
    for (amount, rate) in [(u128::MAX - 1, first.1), (first.0, 0.3), (u128::from(u64::MAX), first.1)] {
        is_mismatched(&w, "a5-wei:1", transfer(&w, 1, amount, rate)).await;
    }
    assert_eq!(site.ledger.total(), 1);
}
