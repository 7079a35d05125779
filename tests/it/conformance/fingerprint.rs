//! An equal key must mean equal arguments, on every path.

use std::{collections::HashMap, sync::Arc};

use idem_runtime::{ErrorKind, Idem, Outcome, Resolution, idempotent, with_outcome};

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, refused, row},
    subject::{Subject, race},
};

#[idempotent(key = "conf-print:<name>", fingerprint = (customer), idem = idem)]
async fn greet(name: &str, customer: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(customer)
}

pub(super) async fn another_fingerprint_is_refused_after_the_completion(s: &Subject) {
    let runs = Runs::default();
    let idem = s.idem().await;
    greet("Customer", 1049, &idem, &runs).await.expect("done");
    let before = row(&idem, "conf-print:Customer").await;
    assert_eq!(
        refused(greet("Customer", 1052, &s.idem().await, &runs).await),
        ErrorKind::FingerprintMismatch
    );
    assert_eq!((runs.count(), row(&idem, "conf-print:Customer").await), (1, before));
}

pub(super) async fn another_fingerprint_is_refused_where_the_answer_is_remembered(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    for _ in 0..3 {
        assert_eq!(greet("Customer", 1049, &idem, &runs).await.expect("done or replayed"), 1049);
        assert_eq!(refused(greet("Customer", 1052, &idem, &runs).await), ErrorKind::FingerprintMismatch);
    }
    assert_eq!(runs.count(), 1);
}

#[idempotent(key = "conf-print-gate:<name>", fingerprint = (customer), idem = idem)]
async fn greet_slowly(
    name: &str,
    customer: u32,
    idem: &Idem,
    gate: &Gate,
    runs: &Runs,
) -> Result<u32, Fault> {
    runs.enter();
    gate.pass().await;
    Ok(customer)
}

pub(super) async fn another_fingerprint_is_refused_while_the_first_runs(s: &Subject) {
    let (idem, other) = (s.idem().await, s.idem().await);
    let (gate, runs) = (Gate::default(), Runs::default());
    let (first, ()) = tokio::join!(greet_slowly("Customer", 1049, &idem, &gate, &runs), async {
        gate.entered().await;
        let before = row(&idem, "conf-print-gate:Customer").await;
        let second = greet_slowly("Customer", 1052, &other, &gate, &runs).await;
        assert_eq!(refused(second), ErrorKind::FingerprintMismatch);
        let same = greet_slowly("Customer", 1049, &other, &gate, &runs).await;
        assert_eq!(refused(same), ErrorKind::InProgress);
        assert_eq!(row(&idem, "conf-print-gate:Customer").await, before);
        gate.open();
    });
    assert_eq!((first.expect("done"), runs.count()), (1049, 1));
}

pub(super) async fn another_fingerprint_is_refused_to_the_losers_of_a_race(s: &Subject) {
    let idems = [s.idem().await, s.idem().await];
    let runs = Arc::new(Runs::default());
    let returned = race((0..16_u32).map(|customer| {
        let (idem, runs) = (idems[customer as usize % 2].clone(), Arc::clone(&runs));
        async move { greet("Customer", customer, &idem, &runs).await }
    }))
    .await;
    let mut winners = 0;
    for returned in returned {
        match returned {
            Ok(_) => winners += 1,
            refusal => assert_eq!(refused(refusal), ErrorKind::FingerprintMismatch),
        }
    }
    assert_eq!((winners, runs.count()), (1, 1));
}

#[idempotent(
    key = "conf-print-stale:<name>",
    fingerprint = (customer),
    on_stale = "retry",
    on_error = "hold",
    idem = idem
)]
async fn greet_and_die(name: &str, customer: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    if runs.enter() == 1 { body_fails("time-out") } else { Ok(customer) }
}

pub(super) async fn another_fingerprint_does_not_take_a_stale_claim_over(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(greet_and_die("Customer", 1049, &idem, &runs).await);
    let before = row(&idem, "conf-print-stale:Customer").await;
    let other = greet_and_die("Customer", 1052, &s.idem().await, &runs).await;
    assert_eq!(refused(other), ErrorKind::FingerprintMismatch);
    assert_eq!((runs.count(), row(&idem, "conf-print-stale:Customer").await), (1, before));

    let (same, outcome) = with_outcome(greet_and_die("Customer", 1049, &idem, &runs)).await;
    assert_eq!((same.expect("done"), outcome), (1049, Some(Outcome::TookOver)));
}

pub(super) async fn a_key_that_is_free_takes_any_fingerprint(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    greet("Customer", 1049, &idem, &runs).await.expect("done");
    idem.resolve("conf-print:Customer", Resolution::Retry).force().await.expect("released");
    assert_eq!(greet("Customer", 1052, &idem, &runs).await.expect("done"), 1052);
    assert_eq!(refused(greet("Customer", 1049, &idem, &runs).await), ErrorKind::FingerprintMismatch);
}

#[idempotent(key = "conf-print-map:<id>", fingerprint = (amounts), idem = idem)]
async fn book(id: u32, amounts: HashMap<String, u32>, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    Ok(())
}

pub(super) async fn the_order_of_a_map_is_no_difference(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    let amounts =
        |order: &[u32]| order.iter().map(|n| (format!("account {n}"), *n)).collect::<HashMap<_, _>>();
    let forwards: Vec<u32> = (0..20).collect();
    let backwards: Vec<u32> = (0..20).rev().collect();
    book(1, amounts(&forwards), &idem, &runs).await.expect("done");
    for _ in 0..8 {
        let (_, outcome) = with_outcome(book(1, amounts(&backwards), &s.idem().await, &runs)).await;
        assert_eq!(outcome, Some(Outcome::Replayed));
    }
    assert_eq!(refused(book(1, amounts(&forwards[1..]), &idem, &runs).await), ErrorKind::FingerprintMismatch);
}
