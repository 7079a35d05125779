//! A panic, an early return, a failure between the claim and the body: the claim is left as the policy wants it, and
//! nothing else is.

use std::{
    env, fmt,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    process, thread,
};

use idem_runtime::{Error, ErrorKind, KeyPart, KeyWriter, OnError, current, idempotent, record::Status};
use idem_tests::{Child, child::Parent};
use serde::{Deserialize, Serialize, Serializer, ser};

use super::{
    call::{Fault, executed, failed, refused, replayed, took_over},
    pool::Pool,
    site::{Site, Worker},
};

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    PanicAtOnce,
    PanicAfterAwait,
    Question,
    Return,
    Value,
}

/// What a panic carries, to see that it is handed on as it is.
#[derive(Debug, PartialEq)]
struct Payload(u32);

fn down() -> Result<u32, Fault> {
    Err(Fault::own("down"))
}

async fn body(end: End) -> Result<u32, Fault> {
    if end == End::PanicAtOnce {
        panic_any(Payload(42));
    }
    tokio::task::yield_now().await;
    if end == End::PanicAfterAwait { panic_any(Payload(42)) } else { Ok(7) }
}

#[idempotent(key = "a22-retry:<id>", on_stale = "retry", idem = w.idem)]
async fn retrying(w: &Worker, id: &str, end: End) -> Result<u32, Fault> {
    w.effect(id);
    if end == End::Return {
        return Err(Fault::own("early"));
    }
    if end == End::Question {
        down()?;
    }
    body(end).await
}

#[idempotent(key = "a22-alert:<id>", idem = w.idem)]
async fn alerting(w: &Worker, id: &str, end: End) -> Result<u32, Fault> {
    w.effect(id);
    if end == End::Return {
        return Err(Fault::own("early"));
    }
    if end == End::Question {
        down()?;
    }
    body(end).await
}

#[idempotent(key = "a22-mark:<id>", on_error = "by_mark", idem = w.idem)]
async fn marking(w: &Worker, id: &str, marks: bool, end: End) -> Result<u32, Fault> {
    w.effect(id);
    if marks {
        current().effect_starts();
    }
    body(end).await
}

#[idempotent(key = "a22-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mailing(w: &Worker, id: &str, end: End) -> Result<u32, Fault> {
    w.effect(id);
    body(end).await
}

#[idempotent(key = "a22-sync:<id>", on_stale = "retry", idem = w.idem)]
fn retrying_sync(w: &Worker, id: &str, panics: bool) -> Result<u32, Fault> {
    w.effect(id);
    if panics { panic_any(Payload(42)) } else { Ok(7) }
}

/// The call panics with the body's own payload.
async fn panics<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) {
    let payload = tokio::spawn(call).await.err().expect("a panic").into_panic();
    assert_eq!(payload.downcast_ref(), Some(&Payload(42)));
}

macro_rules! call {
    ($w:ident, $job:ident($($argument:expr),*)) => {{
        let w = $w.clone();
        async move { $job(&w, $($argument),*).await }
    }};
}

pub(super) async fn a22_a_panic_makes_the_claim_stale_at_once(site: &Site) {
    let w = site.worker().await;
    for (id, end) in [("at-once", End::PanicAtOnce), ("later", End::PanicAfterAwait)] {
        panics(call!(w, retrying(id, end))).await;
        assert_eq!(took_over(retrying(&w, id, End::Value)).await, 7);
        assert_eq!(replayed(retrying(&w, id, End::Value)).await, 7);

        panics(call!(w, alerting(id, end))).await;
        let error = refused(ErrorKind::NeedsReview, alerting(&w, id, End::Value)).await.idem();
        assert!(error.to_string().contains("panicked"), "{error}");
        assert_eq!(site.effects(id), 3);
    }
}

pub(super) async fn a22_a_panic_before_the_mark_frees_the_key_and_after_it_holds_it(site: &Site) {
    let w = site.worker().await;
    for (id, end) in [("at-once", End::PanicAtOnce), ("later", End::PanicAfterAwait)] {
        panics(call!(w, marking(id, false, end))).await;
        assert_eq!(w.row(&format!("a22-mark:{id}")).await.status, Status::Released);
        panics(call!(w, marking(id, true, end))).await;
        refused(ErrorKind::NeedsReview, marking(&w, id, false, End::Value)).await;
        assert_eq!(site.effects(id), 2);
    }
}

pub(super) async fn a22_a_panic_of_a_recorded_effect_records_nothing(site: &Site) {
    let w = site.worker().await;
    panics(call!(w, mailing("x", End::PanicAfterAwait))).await;
    assert_eq!(w.find("a22-mail:x").await, None);
    assert_eq!(executed(mailing(&w, "x", End::Value)).await, 7);
}

pub(super) async fn a22_an_early_return_is_an_error_like_any_other(site: &Site) {
    let w = site.worker().await;
    for (id, end, text) in [("question", End::Question, "down"), ("return", End::Return, "early")] {
        assert_eq!(failed(retrying(&w, id, end)).await.to_string(), text);
        assert_eq!(w.row(&format!("a22-retry:{id}")).await.status, Status::Released);
        assert_eq!(executed(retrying(&w, id, End::Value)).await, 7);

        assert_eq!(failed(alerting(&w, id, end)).await.to_string(), text);
        let error = refused(ErrorKind::NeedsReview, alerting(&w, id, End::Value)).await.idem();
        assert!(error.to_string().contains(text), "{error}");
    }
}

pub(super) async fn a22_a_panic_of_a_synchronous_body_reaches_its_caller(site: &Site) {
    let w = site.worker().await;
    let caller = w.clone();
    let payload = tokio::task::spawn_blocking(move || retrying_sync(&caller, "blocking", true)).await;
    let payload = payload.expect_err("a panic").into_panic();
    assert_eq!(payload.downcast_ref(), Some(&Payload(42)));
    assert_eq!(took_over(async { retrying_sync(&w, "blocking", false) }).await, 7);

    let caught = catch_unwind(AssertUnwindSafe(|| retrying_sync(&w, "caught", true)));
    assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&Payload(42)));
    let caller = w.clone();
    let plain = thread::spawn(move || retrying_sync(&caller, "caught", true)).join();
    assert_eq!(plain.expect_err("a panic").downcast_ref(), Some(&Payload(42)));
    assert_eq!(took_over(async { retrying_sync(&w, "caught", false) }).await, 7);
    assert_eq!(w.row("a22-sync:caught").await.attempt, 3);
}

/// Not stale for ever after: a body that panics each time comes to a person in the end.
pub(super) async fn a22_a_body_that_always_panics_is_not_taken_over_for_ever(site: &Site) {
    let w = site.worker().await;
    for _ in 0..=5 {
        panics(call!(w, retrying("again", End::PanicAtOnce))).await;
    }
    refused(ErrorKind::NeedsReview, retrying(&w, "again", End::Value)).await;
    assert_eq!(site.effects("again"), 6);
}

/// A value that panics where the attribute's own code meets it.
#[derive(Clone, Copy, Debug)]
struct Mine(bool);

impl KeyPart for Mine {
    fn write(&self, out: &mut KeyWriter) {
        if self.0 {
            panic_any(Payload(42));
        }
        out.write_str("mine");
    }
}

impl Serialize for Mine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 {
            panic_any(Payload(42));
        }
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Mine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self(false))
    }
}

#[idempotent(key = "a22-key:<mine>", idem = w.idem)]
async fn keyed(w: &Worker, mine: Mine) -> Result<u32, Error> {
    w.effect("keyed");
    Ok(7)
}

#[idempotent(key = "a22-print:<id>", fingerprint = (mine), idem = w.idem)]
async fn printed(w: &Worker, id: &str, mine: Mine) -> Result<u32, Error> {
    w.effect("printed");
    Ok(7)
}

#[idempotent(key = "a22-result:<id>", on_stale = "retry", idem = w.idem)]
async fn resulting(w: &Worker, id: &str, mine: Mine) -> Result<Mine, Error> {
    w.effect("resulting");
    Ok(mine)
}

pub(super) async fn a22_a_panic_before_the_claim_leaves_nothing(site: &Site) {
    let w = site.worker().await;
    panics(call!(w, keyed(Mine(true)))).await;
    panics(call!(w, printed("x", Mine(true)))).await;
    assert_eq!(w.find("a22-key:mine").await, None);
    assert_eq!(w.find("a22-print:x").await, None);
    assert_eq!(site.ledger.total(), 0);
    assert_eq!(executed(keyed(&w, Mine(false))).await, 7);
    assert_eq!(executed(printed(&w, "x", Mine(false))).await, 7);
}

/// The effect happened: this is as if the body had panicked.
pub(super) async fn a22_a_result_that_panics_when_it_is_stored_holds_the_key(site: &Site) {
    let w = site.worker().await;
    panics(call!(w, resulting("x", Mine(true)))).await;
    assert_eq!(w.row("a22-result:x").await.status, Status::Processing);
    took_over(resulting(&w, "x", Mine(false))).await;
    replayed(resulting(&w, "x", Mine(false))).await;
}

/// An error that panics when somebody looks at it.
#[derive(Debug)]
struct Grudge;

impl fmt::Display for Grudge {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic_any(Payload(42))
    }
}

impl From<Error> for Grudge {
    fn from(error: Error) -> Self {
        panic!("not expected: {error}")
    }
}

#[idempotent(key = "a22-grudge:<id>", idem = w.idem)]
async fn grudging(w: &Worker, id: &str) -> Result<u32, Grudge> {
    w.effect(id);
    Err(Grudge)
}

fn judge(_: &Fault) -> OnError {
    panic_any(Payload(42))
}

#[idempotent(key = "a22-judge:<id>", on_error = judge, idem = w.idem)]
async fn judged(w: &Worker, id: &str) -> Result<u32, Fault> {
    w.effect(id);
    Err(Fault::own("down"))
}

pub(super) async fn a22_an_error_that_panics_when_it_is_looked_at_holds_the_key(site: &Site) {
    let w = site.worker().await;
    panics(call!(w, grudging("x"))).await;
    panics(call!(w, judged("x"))).await;
    for key in ["a22-grudge:x", "a22-judge:x"] {
        let row = w.row(key).await;
        assert_eq!(row.status, Status::Processing);
        assert!(row.lease_until <= Some(row.now), "stale at once");
    }
    refused(ErrorKind::NeedsReview, judged(&w, "x")).await;
}

#[derive(Debug)]
struct Refusing;

impl Serialize for Refusing {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom("not today"))
    }
}

#[idempotent(key = "a22-refusing:<id>", fingerprint = (refusing), idem = w.idem)]
async fn unprintable(w: &Worker, id: &str, refusing: Refusing) -> Result<u32, Error> {
    w.effect(id);
    Ok(7)
}

pub(super) async fn a22_an_argument_that_cannot_be_converted_claims_nothing(site: &Site) {
    let w = site.worker().await;
    let error = refused(ErrorKind::InvalidKey, unprintable(&w, "x", Refusing)).await;
    assert!(error.to_string().contains("not today"), "{error}");
    assert_eq!(w.find("a22-refusing:x").await, None);
    assert_eq!(site.ledger.total(), 0);
}

#[idempotent(key = "a22-pool:<id>", on_stale = "retry", idem = w.idem)]
async fn pooled(w: &Worker, id: &str, pool: &Pool, panics: bool) -> Result<i64, Fault> {
    w.effect(id);
    pool.with_connection(async || {
        if panics {
            panic_any(Payload(42))
        }
    })
    .await;
    Ok(pool.number("SELECT 7").await)
}

pub(super) async fn a22_a_panic_with_a_connection_in_hand_leaves_the_pool_usable(site: &Site) {
    let w = site.worker().await;
    let pool = Pool::of(site, 1).await;
    for id in ["x", "y"] {
        panics({
            let (w, pool) = (w.clone(), pool.clone());
            async move { pooled(&w, id, &pool, true).await }
        })
        .await;
        assert_eq!(pool.number("SELECT 1").await, 1);
        assert_eq!(took_over(pooled(&w, id, &pool, false)).await, 7);
    }
}

const JOB: &str = "IDEM_CASE_JOB";

#[tokio::test]
#[ignore = "the child of another test"]
async fn aborting_worker() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    // What `panic = "abort"` comes to.
    std::panic::set_hook(Box::new(|_| process::abort()));
    parent.say("calls");
    let _ = match env::var(JOB).expect("set by the parent").as_str() {
        "retry" => retrying(&w, "abort", End::PanicAfterAwait).await,
        _ => alerting(&w, "abort", End::PanicAfterAwait).await,
    };
}

pub(super) async fn a22_a_panic_that_aborts_is_the_death_of_its_process(site: &Site) {
    let w = site.worker().await;
    for job in ["retry", "alert"] {
        let mut child = Child::spawn(site.child("cases::a22::aborting_worker").env(JOB, job));
        child.expect("calls");
        assert!(!child.wait().success());
    }
    refused(ErrorKind::InProgress, retrying(&w, "abort", End::Value)).await;
    refused(ErrorKind::InProgress, alerting(&w, "abort", End::Value)).await;
    site.set("a22-retry:abort", "lease_until = 1").await;
    site.set("a22-alert:abort", "lease_until = 1").await;
    assert_eq!(took_over(retrying(&w, "abort", End::Value)).await, 7);
    refused(ErrorKind::NeedsReview, alerting(&w, "abort", End::Value)).await;
}
