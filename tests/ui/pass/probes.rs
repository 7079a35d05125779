//! `on_stale = probe(path)`: free functions, methods by every receiver, generics, boxed futures, plain functions.

#![allow(clippy::unused_async, clippy::trivially_copy_pass_by_ref, reason = "a probe is as its job wants it")]

use std::{
    borrow::Borrow,
    fmt::Debug,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use idem_runtime::{Error, KeyPart, OnError, Outcome, Probe, idempotent, with_outcome, with_outcome_sync};

use super::{is_send, memory};

/// Calls three times: the body fails and nobody knows what it did, the probe finds its effect, and that is replayed.
async fn found<T: PartialEq + Debug, E: Debug>(call: impl AsyncFn() -> Result<T, E>) -> T {
    call().await.expect_err("the first one fails");
    let (found, outcome) = with_outcome(call()).await;
    assert_eq!(outcome, Some(Outcome::Probed), "{found:?}");
    let (again, outcome) = with_outcome(call()).await;
    assert_eq!(outcome, Some(Outcome::Replayed), "{again:?}");
    let found = found.expect("a result");
    assert_eq!(found, again.expect("the stored one"));
    found
}

/// [`found`] for a sync job.
fn found_sync<T: PartialEq + Debug, E: Debug>(call: impl Fn() -> Result<T, E>) -> T {
    call().expect_err("the first one fails");
    let (found, outcome) = with_outcome_sync(&call);
    assert_eq!(outcome, Some(Outcome::Probed), "{found:?}");
    let (again, outcome) = with_outcome_sync(&call);
    assert_eq!(outcome, Some(Outcome::Replayed), "{again:?}");
    let found = found.expect("a result");
    assert_eq!(found, again.expect("the stored one"));
    found
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Idem(#[from] Error),
    #[error("time-out")]
    TimedOut,
}

fn fails<T>() -> Result<T, Failure> {
    Err(Failure::TimedOut)
}

mod bank {
    use super::Probe;

    pub(super) async fn was_charged(user_id: &u64, month: &str) -> Probe<String> {
        tokio::task::yield_now().await;
        Probe::Happened(format!("{user_id} {month}"))
    }
}

// The order is the function's.
async fn was_charged(month: &str, user_id: &u64) -> Probe<String> {
    bank::was_charged(user_id, month).await
}

#[idempotent(key = "probes:free:<month>:<user_id>:<month>", on_stale = probe(bank::was_charged), idem = memory())]
async fn free(user_id: u64, month: &str, cents: Vec<u64>) -> Result<String, Failure> {
    drop(cents);
    tokio::task::yield_now().await;
    fails()
}

#[idempotent(key = "probes:owned:<user_id>:<month>", on_stale = probe(self::was_charged), key_fn = owned_key, idem = memory())]
async fn owned(mut month: String, user_id: u64) -> Result<String, Failure> {
    month.push('!');
    fails()
}

#[idempotent(key = "probes:everything", singleton, on_stale = probe(was_done), max_takeovers = 1, idem = memory())]
async fn everything() -> Result<(), Failure> {
    fails()
}

async fn was_done() -> Probe<()> {
    Probe::Happened(())
}

/// No serde for it, so that nothing is stored.
#[derive(Debug, PartialEq)]
struct Receipt<'a>(&'a str);

#[idempotent(key = "probes:unstored:<text>", on_stale = probe(was_printed), replay = false, idem = memory())]
async fn unstored<'a>(text: &'a str) -> Result<Receipt<'a>, Failure> {
    fails()
}

async fn was_printed<'a>(text: &&'a str) -> Probe<Receipt<'a>> {
    Probe::Happened(Receipt(text))
}

#[idempotent(key = "probes:judged:<id>", on_stale = probe(twice), on_error = judge, idem = memory())]
async fn judged(id: u32) -> Result<u32, Failure> {
    fails()
}

async fn twice(id: &u32) -> Probe<u32> {
    Probe::Happened(id * 2)
}

fn judge(failure: &Failure) -> OnError {
    if matches!(failure, Failure::TimedOut) { OnError::Hold } else { OnError::Release }
}

#[idempotent(key = "probes:generic:<id>:<name>", on_stale = probe(generic_probe), idem = memory())]
async fn generic<T, B, const N: usize>(other: [T; N], id: B, name: impl KeyPart) -> Result<u8, Failure>
where
    B: KeyPart + Borrow<u8>,
{
    drop((other, name));
    fails()
}

async fn generic_probe<B: Borrow<u8>>(id: &B, _: &impl KeyPart) -> Probe<u8> {
    Probe::Happened(*id.borrow())
}

#[idempotent(key = "probes:boxed:<id>", on_stale = probe(twice), idem = memory())]
fn boxed<'a>(id: u32, text: &'a str) -> Pin<Box<dyn Future<Output = Result<u32, Failure>> + Send + 'a>> {
    Box::pin(async move {
        let _ = (id, text);
        fails()
    })
}

#[derive(Clone, Default)]
struct Service {
    tenant: String,
    seen: Arc<AtomicBool>,
}

impl Service {
    async fn was_done(&self, id: &u8) -> Probe<String> {
        self.seen.store(true, Ordering::SeqCst);
        Probe::Happened(format!("{} {id}", self.tenant))
    }

    async fn by_itself(&self) -> Probe<String> {
        self.was_done(&0).await
    }

    fn at_once(&self, id: &u8) -> Probe<String> {
        Probe::Happened(format!("{} {id}", self.tenant))
    }

    #[idempotent(key = "probes:shared:<id>", on_stale = probe(Self::was_done), idem = memory())]
    async fn shared(&self, id: u8) -> Result<String, Failure> {
        fails()
    }

    #[idempotent(key = "probes:exclusive:<id>", on_stale = probe(Self::was_done), idem = memory())]
    async fn exclusive(&mut self, id: u8) -> Result<String, Failure> {
        self.tenant.push('!');
        fails()
    }

    #[idempotent(key = "probes:by_value:<self.tenant>", on_stale = probe(Service::by_itself), idem = memory())]
    async fn by_value(self) -> Result<String, Failure> {
        drop(self);
        fails()
    }

    #[idempotent(key = "probes:counted:<id>", on_stale = probe(Self::was_done), idem = memory())]
    async fn counted(self: Arc<Self>, id: u8) -> Result<String, Failure> {
        drop(self);
        fails()
    }

    #[idempotent(key = "probes:pinned:<id>", on_stale = probe(Self::was_done), idem = memory())]
    async fn pinned(self: Pin<&mut Self>, id: u8) -> Result<String, Failure> {
        fails()
    }

    #[idempotent(key = "probes:sync:<id>", on_stale = probe(Self::at_once), idem = memory())]
    fn sync(&mut self, id: u8) -> Result<String, Failure> {
        self.tenant.push('!');
        fails()
    }

    #[idempotent(key = "probes:sync_judged:<id>", on_stale = probe(Self::at_once), on_error = judge, idem = memory())]
    fn sync_judged(&self, id: u8) -> Result<String, Failure> {
        fails()
    }
}

#[async_trait]
trait Work {
    async fn work(&self, id: u8, pair: (u8, u8)) -> Result<String, Failure>;
}

#[async_trait]
impl Work for Service {
    #[idempotent(key = "probes:async_trait:<id>", on_stale = probe(Self::was_done), idem = memory())]
    async fn work(&self, id: u8, (first, second): (u8, u8)) -> Result<String, Failure> {
        let _ = (id, first + second);
        fails()
    }
}

trait Native {
    async fn native(&self, id: u8) -> Result<String, Failure>;
}

impl Native for Service {
    #[idempotent(key = "probes:native:<id>", on_stale = probe(Service::was_done), idem = memory())]
    async fn native(&self, id: u8) -> Result<String, Failure> {
        fails()
    }
}

macro_rules! made {
    ($name:ident, $key:literal, $id:ident, $probe:path) => {
        #[idempotent(key = $key, on_stale = probe($probe), idem = memory())]
        async fn $name($id: u32) -> Result<u32, Failure> {
            fails()
        }
    };
}

made!(made, "probes:made:<id>", id, twice);

#[tokio::test]
async fn a_probe_answers_for_each_kind_of_function() {
    assert_eq!(found(async || is_send(free(1, "june", vec![1])).await).await, "1 june");
    assert_eq!(found(async || is_send(owned("june".to_owned(), 1)).await).await, "1 june");
    assert_eq!(owned_key(&"june".to_owned(), &1).expect("a key").as_str(), "probes:owned:1:june");
    found(async || is_send(everything()).await).await;
    assert_eq!(found(async || is_send(judged(4)).await).await, 8);
    assert_eq!(found(async || is_send(generic([()], 4, "x")).await).await, 4);
    assert_eq!(found(async || is_send(boxed(4, "x")).await).await, 8);
    assert_eq!(found(async || is_send(made(4)).await).await, 8);

    unstored("x").await.expect_err("the first one fails");
    assert_eq!(is_send(unstored("x")).await.expect("found"), Receipt("x"));
    let again = unstored("x").await;
    assert!(matches!(again, Err(Failure::Idem(Error::AlreadyCompleted { .. }))), "{again:?}");
}

#[tokio::test]
async fn a_probe_takes_the_receiver_whatever_it_is() {
    let service = Service { tenant: "acme".to_owned(), ..Service::default() };
    assert_eq!(found(async || is_send(service.shared(1)).await).await, "acme 1");
    assert!(service.seen.load(Ordering::SeqCst), "asked, and not merely answered");
    assert_eq!(found(async || is_send(service.clone().exclusive(1)).await).await, "acme 1");
    assert_eq!(found(async || is_send(service.clone().by_value()).await).await, "acme 0");
    assert_eq!(found(async || is_send(Arc::new(service.clone()).counted(1)).await).await, "acme 1");
    assert_eq!(found(async || Pin::new(&mut service.clone()).pinned(1).await).await, "acme 1");
    assert_eq!(found(async || service.work(1, (1, 2)).await).await, "acme 1");
    assert_eq!(found(async || service.native(1).await).await, "acme 1");
}

#[test]
fn a_probe_answers_for_plain_functions() {
    let service = Service { tenant: "acme".to_owned(), ..Service::default() };
    assert_eq!(found_sync(|| service.clone().sync(1)), "acme 1");
    assert_eq!(found_sync(|| service.sync_judged(1)), "acme 1");
}
