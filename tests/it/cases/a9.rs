//! A body that changes its own arguments: the key is what it was before the body began.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idem_runtime::{Error, KeyPart, KeyWriter, current, idempotent, record::Status};
use tokio::time::sleep;

use super::{
    call::{Fault, executed, executed_sync, failed, replayed, replayed_sync},
    gate::Gate,
    site::{Site, Worker},
};

#[derive(Clone, Debug, serde::Serialize)]
struct Request {
    id: u64,
}

#[idempotent(key = "a9:<req.id>", fingerprint = (req), on_stale = "retry", idem = w.idem)]
async fn handle(w: &Worker, mut req: Request, fails: bool) -> Result<u64, Fault> {
    w.effect(&format!("handle {}", req.id));
    req.id = 999;
    tokio::task::yield_now().await;
    if fails { Err(Fault::own("down")) } else { Ok(req.id) }
}

pub(super) async fn a9_a_body_that_changes_its_argument_completes_its_own_row(site: &Site) {
    let w = site.worker().await;
    let req = Request { id: 7 };
    assert_eq!(executed(handle(&w, req.clone(), false)).await, 999);
    assert_eq!(w.row("a9:7").await.status, Status::Completed);
    assert_eq!(w.find("a9:999").await, None);
    assert_eq!(replayed(handle(&w, req, false)).await, 999);
    assert_eq!(site.ledger.entries(), ["handle 7"]);
}

pub(super) async fn a9_a_body_that_changes_its_argument_fails_on_its_own_row(site: &Site) {
    let w = site.worker().await;
    let req = Request { id: 8 };
    failed(handle(&w, req.clone(), true)).await;
    let row = w.row("a9:8").await;
    assert_eq!((row.status, row.error.as_deref()), (Status::Released, Some("down")));
    assert_eq!(w.find("a9:999").await, None);
    assert_eq!(executed(handle(&w, req, false)).await, 999, "a normal retry");
    assert_eq!(site.ledger.entries(), ["handle 8", "handle 8"]);
}

/// A key part that somebody else changes.
#[derive(Clone)]
struct Counter(Arc<AtomicU64>);

impl KeyPart for Counter {
    fn write(&self, out: &mut KeyWriter) {
        out.write_display(&self.0.load(Ordering::SeqCst));
    }
}

#[idempotent(key = "a9-counter:<counter>", stale_after = "2s", idem = w.idem)]
async fn watch(w: &Worker, counter: &Counter, gate: &Gate) -> Result<String, Error> {
    w.effect("watch");
    gate.pass().await;
    Ok(current().key().to_string())
}

pub(super) async fn a9_a_value_that_changes_under_the_body_keeps_its_key(site: &Site) {
    let w = site.worker().await;
    let (counter, gate) = (Counter(Arc::new(AtomicU64::new(1))), Gate::new());
    let running = tokio::spawn({
        let (w, counter, gate) = (w.clone(), counter.clone(), gate.clone());
        async move { executed(watch(&w, &counter, &gate)).await }
    });
    gate.arrived().await;
    counter.0.store(999, Ordering::SeqCst);
    assert_eq!(w.row("a9-counter:1").await.status, Status::Processing);
    gate.open();
    assert_eq!(running.await.expect("no panic"), "a9-counter:1");
    assert_eq!(w.row("a9-counter:1").await.status, Status::Completed);
    assert_eq!(w.find("a9-counter:999").await, None);
    counter.0.store(1, Ordering::SeqCst);
    replayed(watch(&w, &counter, &gate)).await;
}

struct Account {
    worker: Worker,
    id: u64,
    balance: i64,
}

impl Account {
    #[idempotent(key = "a9-account:<self.id>", idem = self.worker.idem)]
    fn close(&mut self) -> Result<i64, Error> {
        self.worker.effect("close");
        self.id = 999;
        Ok(std::mem::take(&mut self.balance))
    }
}

pub(super) async fn a9_a_method_that_changes_itself_keeps_its_key(site: &Site) {
    let w = site.worker().await;
    let mut account = Account { worker: w.clone(), id: 7, balance: 42 };
    assert_eq!(executed_sync(|| account.close()), 42);
    assert_eq!((account.id, account.balance), (999, 0));
    assert_eq!(w.row("a9-account:7").await.status, Status::Completed);
    assert_eq!(w.find("a9-account:999").await, None);
    account.id = 7;
    assert_eq!(replayed_sync(|| account.close()), 42);
    assert_eq!(site.ledger.total(), 1);
}

#[idempotent(key = "a9-beat:<req.id>", stale_after = "1s", idem = w.idem)]
async fn outlast(w: &Worker, mut req: Request, gate: &Gate) -> Result<u64, Error> {
    w.effect("outlast");
    req.id = 999;
    gate.pass().await;
    Ok(req.id)
}

pub(super) async fn a9_heartbeats_go_to_the_row_of_the_claim(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(outlast(&w, Request { id: 7 }, &gate)).await }
    });
    gate.arrived().await;
    let claimed = w.row("a9-beat:7").await.lease_until;
    let beaten = w.row_such_that("a9-beat:7", "renewed", |row| row.lease_until > claimed).await;
    sleep(Duration::from_millis(1_200)).await;
    let row = w.row("a9-beat:7").await;
    assert!(row.lease_until > Some(row.now), "alive after its first lease");
    assert_eq!((row.owner, row.fence), (beaten.owner, beaten.fence));
    assert_eq!(w.find("a9-beat:999").await, None);
    gate.open();
    assert_eq!(running.await.expect("no panic"), 999);
}

#[idempotent(key = "a9-mail:<req.id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, mut req: Request) -> Result<u64, Error> {
    w.effect("mail");
    req.id += 1;
    Ok(req.id)
}

pub(super) async fn a9_an_effect_is_recorded_under_the_key_it_began_with(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(mail(&w, Request { id: 7 })).await, 8);
    assert_eq!(w.find("a9-mail:8").await, None);
    assert_eq!(replayed(mail(&w, Request { id: 7 })).await, 8);
    assert_eq!(executed(mail(&w, Request { id: 8 })).await, 9);
    assert_eq!(site.ledger.total(), 2);
}
