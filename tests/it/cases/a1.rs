//! Two functions share one key: one must never answer for the other.

use idem_runtime::{Error, ErrorKind, idempotent};

use super::{
    call::{executed, refused, replayed},
    site::{Site, Worker},
};

#[idempotent(key = "a1-invoice:<id>", idem = w.idem)]
async fn charge(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("charge");
    Ok(format!("charged {id}"))
}

#[idempotent(key = "a1-invoice:<id>", idem = w.idem)]
async fn refund(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("refund");
    Ok(format!("refunded {id}"))
}

/// Which functions the refusal names.
fn names(error: &Error, both: [&str; 2]) {
    let text = error.to_string();
    for name in both {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(text.contains("a1.rs:"), "where they stand: {text}");
}

pub(super) async fn a1_two_functions_never_answer_for_each_other(site: &Site) {
    let w = site.worker().await;
    for _ in 0..2 {
        names(&refused(ErrorKind::KeyConflict, charge(&w, 7)).await, ["a1::charge", "a1::refund"]);
        names(&refused(ErrorKind::KeyConflict, refund(&w, 7)).await, ["a1::charge", "a1::refund"]);
    }
    assert_eq!(site.ledger.total(), 0, "neither ran");
    assert_eq!(w.find("a1-invoice:7").await, None);
    assert!(!charge(&w, 7).await.expect_err("a conflict").is_retryable());
}

mod north {
    use super::{Error, Worker, idempotent};

    #[idempotent(key = "a1-sync:<id>", idem = w.idem)]
    pub(super) async fn sync(w: &Worker, id: u32) -> Result<u32, Error> {
        w.effect("north");
        Ok(id)
    }
}

mod south {
    use super::{Error, Worker, idempotent};

    #[idempotent(key = "a1-sync:<number>", mode = "record_after", idem = w.idem)]
    pub(super) async fn sync(w: &Worker, number: u32) -> Result<u32, Error> {
        w.effect("south");
        Ok(number)
    }
}

pub(super) async fn a1_two_functions_of_one_name_are_two(site: &Site) {
    let w = site.worker().await;
    let both = ["a1::north::sync", "a1::south::sync"];
    names(&refused(ErrorKind::KeyConflict, north::sync(&w, 1)).await, both);
    names(&refused(ErrorKind::KeyConflict, south::sync(&w, 1)).await, both);
    assert_eq!(site.ledger.total(), 0);
}

struct Invoice(Worker);
struct Order(Worker);

trait Close {
    async fn close(&self, id: u32) -> Result<String, Error>;
}

impl Close for Invoice {
    #[idempotent(key = "a1-close:<id>", idem = self.0.idem)]
    async fn close(&self, id: u32) -> Result<String, Error> {
        self.0.effect("invoice");
        Ok(format!("invoice {id}"))
    }
}

impl Close for Order {
    #[idempotent(key = "a1-close:<id>", idem = self.0.idem)]
    async fn close(&self, id: u32) -> Result<String, Error> {
        self.0.effect("order");
        Ok(format!("order {id}"))
    }
}

pub(super) async fn a1_one_trait_method_of_two_types_is_two(site: &Site) {
    let w = site.worker().await;
    names(
        &refused(ErrorKind::KeyConflict, Invoice(w.clone()).close(1)).await,
        ["a1::close", "allow_overlap"],
    );
    names(&refused(ErrorKind::KeyConflict, Order(w.clone()).close(1)).await, ["a1::close", "allow_overlap"]);
    assert_eq!(site.ledger.total(), 0);
}

/// A provided method is one function for all types that do not override it.
trait Notify {
    const NAME: &'static str;

    fn worker(&self) -> &Worker;

    #[idempotent(key = "a1-notify:<id>", idem = self.worker().idem)]
    async fn notify(&self, id: u32) -> Result<String, Error> {
        self.worker().effect(Self::NAME);
        Ok(format!("{} {id}", Self::NAME))
    }

    #[idempotent(key = "a1-remind:<id>", idem = self.worker().idem)]
    fn remind(&self, id: u32) -> Result<String, Error> {
        self.worker().effect(Self::NAME);
        Ok(format!("{} {id}", Self::NAME))
    }
}

impl Notify for Invoice {
    const NAME: &'static str = "invoice";

    fn worker(&self) -> &Worker {
        &self.0
    }
}

impl Notify for Order {
    const NAME: &'static str = "order";

    fn worker(&self) -> &Worker {
        &self.0
    }
}

pub(super) async fn a1_a_provided_method_of_two_types_is_two(site: &Site) {
    let w = site.worker().await;
    let (invoice, order) = (Invoice(w.clone()), Order(w.clone()));
    assert_eq!(executed(invoice.notify(1)).await, "invoice 1");
    names(&refused(ErrorKind::KeyConflict, order.notify(1)).await, ["Invoice", "Order"]);
    names(&refused(ErrorKind::KeyConflict, order.notify(2)).await, ["Invoice", "Order"]);
    assert_eq!(replayed(invoice.notify(1)).await, "invoice 1");

    assert_eq!(invoice.remind(1).expect("the first type"), "invoice 1");
    let error = order.remind(1).expect_err("the second type");
    assert_eq!(error.kind(), ErrorKind::KeyConflict);
    assert!(!error.to_string().contains("closure"), "{error}");
    assert_eq!((site.effects("invoice"), site.effects("order")), (2, 0));
}

struct Service<T> {
    worker: Worker,
    kind: T,
}

impl<T: ToString> Service<T> {
    #[idempotent(key = "a1-service:<id>", idem = self.worker.idem)]
    async fn sync(&self, id: u32) -> Result<String, Error> {
        self.worker.effect(&self.kind.to_string());
        Ok(format!("{} {id}", self.kind.to_string()))
    }
}

pub(super) async fn a1_a_method_of_two_instances_of_a_generic_type_is_two(site: &Site) {
    let worker = site.worker().await;
    let numbered = Service { worker: worker.clone(), kind: 1 };
    let named = Service { worker, kind: "one".to_owned() };
    assert_eq!(executed(numbered.sync(7)).await, "1 7");
    names(
        &refused(ErrorKind::KeyConflict, named.sync(7)).await,
        ["Service<i32>", "Service<alloc::string::String>"],
    );
    assert_eq!(replayed(numbered.sync(7)).await, "1 7");
    assert_eq!((site.effects("1"), site.effects("one")), (1, 0));
}

trait Tenant {
    fn worker(&self) -> &Worker;

    fn name(&self) -> &'static str;

    #[idempotent(key = "a1-tenant:<tenant>:<id>", idem = self.worker().idem, allow_overlap(Tenant))]
    async fn import(&self, tenant: &str, id: u32) -> Result<String, Error> {
        self.worker().effect(tenant);
        Ok(format!("{} {id}", self.name()))
    }
}

impl Tenant for Invoice {
    fn worker(&self) -> &Worker {
        &self.0
    }

    fn name(&self) -> &'static str {
        "invoice"
    }
}

impl Tenant for Order {
    fn worker(&self) -> &Worker {
        &self.0
    }

    fn name(&self) -> &'static str {
        "order"
    }
}

#[idempotent(key = "a1-import:<kind>:<id>", idem = w.idem)]
async fn import<K: idem_runtime::KeyPart + ToString>(w: &Worker, kind: K, id: u32) -> Result<String, Error> {
    w.effect("import");
    Ok(format!("{} {id}", kind.to_string()))
}

pub(super) async fn a1_what_the_key_tells_apart_is_apart(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(import(&w, 7, 1)).await, "7 1");
    assert_eq!(executed(import(&w, "seven", 1)).await, "seven 1");
    assert_eq!(replayed(import(&w, "seven".to_owned(), 1)).await, "seven 1");

    let (invoice, order) = (Invoice(w.clone()), Order(w));
    assert_eq!(executed(invoice.import("invoice", 1)).await, "invoice 1");
    assert_eq!(executed(order.import("order", 1)).await, "order 1");
}

#[idempotent(key = "a1-shared:<id>", idem = w.idem)]
async fn first_spelling(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("shared");
    Ok(format!("first {id}"))
}

#[idempotent(key = "a1-shared:<id>", idem = w.idem, allow_overlap(first_spelling))]
fn second_spelling(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("shared");
    Ok(format!("second {id}"))
}

pub(super) async fn a1_a_shared_key_space_is_said_aloud(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(first_spelling(&w, 1)).await, "first 1");
    assert_eq!(second_spelling(&w, 1).expect("a replay"), "first 1", "one key space is meant");
    assert_eq!(site.effects("shared"), 1);
}

#[idempotent(key = "a1-space:<id>", idem = w.idem)]
async fn spaced(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("spaced");
    Ok(id.to_string())
}

pub(super) async fn a1_a_row_of_another_namespace_is_another_key(site: &Site) {
    for (namespace, count) in [("staging", 1), ("production", 2)] {
        let w = site.worker_by(|builder| builder.namespace(namespace)).await;
        executed(spaced(&w, 1)).await;
        replayed(spaced(&w, 1)).await;
        assert_eq!(site.effects("spaced"), count);
        assert_eq!(w.row("a1-space:1").await.key, format!("{namespace}%:a1-space:1"));
    }
}

#[idempotent(key = "a1-row:<id>", idem = w.idem)]
async fn locked(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("locked");
    Ok(id.to_string())
}

#[idempotent(key = "a1-effect:<id>", mode = "record_after", idem = w.idem)]
async fn recorded(w: &Worker, id: u32) -> Result<String, Error> {
    w.effect("recorded");
    Ok(id.to_string())
}

/// As the binary of another version, or another service, left it.
pub(super) async fn a1_a_row_of_another_template_is_not_ours(site: &Site) {
    let w = site.worker().await;
    executed(locked(&w, 1)).await;
    executed(recorded(&w, 1)).await;
    for key in ["a1-row:1", "a1-effect:1"] {
        site.set(key, "template = 'a1-<>:<>', job = 'billing::refund'").await;
    }
    let error = refused(ErrorKind::KeyConflict, locked(&w, 1)).await.to_string();
    assert!(error.contains("billing::refund") && error.contains("a1::locked"), "{error}");
    let error = refused(ErrorKind::KeyConflict, recorded(&w, 1)).await.to_string();
    assert!(error.contains("billing::refund") && error.contains("a1::recorded"), "{error}");

    site.set("a1-row:1", "status = 'processing', owner = 'another', lease_until = 1, on_stale = 'retry'")
        .await;
    refused(ErrorKind::KeyConflict, locked(&w, 1)).await;
    site.set("a1-row:1", "status = 'failed'").await;
    refused(ErrorKind::KeyConflict, locked(&w, 1)).await;
    site.set("a1-row:1", "status = 'needs_review'").await;
    refused(ErrorKind::KeyConflict, locked(&w, 1)).await;
    assert_eq!(site.ledger.total(), 2);
}
