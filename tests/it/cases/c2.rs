//! A caller that gives up in the middle: no body starts for it, no claim outlives it, and an effect that happened is
//! recorded.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use idem_runtime::{Error, ErrorKind, idempotent, record::Status};
use idem_tests::{Backend, Proxy};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    call::{executed, refused, replayed, took_over},
    gate::Gate,
    site::{Connected, Site, Worker},
};

/// Whether a caller is still there.
#[derive(Clone, Default)]
struct Caller(Arc<AtomicBool>);

/// Notes that it is gone, when it goes.
struct Leaving(Caller);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::SeqCst);
    }
}

/// Once entered it is through: there is no await at which it could be dropped.
#[idempotent(key = "c2-brief:<id>", idem = w.idem)]
async fn brief(w: &Worker, id: u32, caller: &Caller) -> Result<u32, Error> {
    w.effect(if caller.0.load(Ordering::SeqCst) { "too late" } else { "in time" });
    w.effect(&id.to_string());
    Ok(id)
}

/// Calls each key with a limit, and then each again without one.
async fn give_up_at_random(site: &Site, w: &Worker, keys: u32, longest: Duration) {
    let chance = RandomState::new();
    let mut callers = JoinSet::new();
    for id in 0..keys {
        let micros = u64::try_from(longest.as_micros()).expect("a short time");
        let limit = Duration::from_micros(chance.hash_one(id) % micros);
        let w = w.clone();
        callers.spawn(async move {
            let caller = Caller::default();
            let leaving = Leaving(caller.clone());
            let call = async {
                let _leaving = leaving;
                brief(&w, id, &caller).await
            };
            timeout(limit, call).await.is_ok()
        });
        if callers.len() >= 50 {
            callers.join_next().await.expect("a caller").expect("no panic");
        }
    }
    while callers.join_next().await.is_some() {}

    let began = Instant::now();
    for id in 0..keys {
        let w = w.clone();
        callers.spawn(async move { without_limit(&w, id).await == id });
    }
    assert!(callers.join_all().await.into_iter().all(|right| right));
    assert!(
        began.elapsed() < Duration::from_secs(50),
        "no key is blocked for a lease: {:?}",
        began.elapsed()
    );
    assert_eq!(site.effects("too late"), 0, "no body starts after its caller has left");
    let effects = site.ledger.entries();
    let ran: HashSet<&String> = effects.iter().filter(|entry| *entry != "in time").collect();
    assert_eq!((effects.len(), ran.len()), (2 * keys as usize, keys as usize), "each ran once");
}

/// Calls a key until nobody holds it any more.
async fn without_limit(w: &Worker, id: u32) -> u32 {
    loop {
        match brief(w, id, &Caller::default()).await {
            Ok(value) => return value,
            Err(error) if error.kind() == ErrorKind::InProgress => sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(super) async fn c2_callers_that_give_up_at_random_lose_and_repeat_nothing(site: &Site) {
    let w = site.worker().await;
    give_up_at_random(site, &w, 300, Duration::from_millis(4)).await;
}

pub(super) async fn c2_callers_that_give_up_on_a_slow_network_lose_and_repeat_nothing(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let w = site.worker_by(|builder| builder.url(url)).await;
    proxy.delay(Duration::from_millis(5));
    give_up_at_random(site, &w, 1_000, Duration::from_millis(50)).await;
    let open = site.connections().await;
    assert!(open <= 4, "its connections are back to normal: {open}");
    assert_eq!(site.idle_transactions().await, 0);
}

/// Keeps a database from acknowledging what is written.
enum Jam {
    /// A foreign writer.
    Writer(Connected),
    /// A foreign transaction on the row.
    Lock(Connected),
}

impl Jam {
    async fn of(site: &Site, key: &str) -> Self {
        let mut hand = site.connection().await;
        if site.backend() == Backend::Sqlite {
            hand.execute("BEGIN IMMEDIATE").await;
            return Self::Writer(hand);
        }
        hand.execute("BEGIN").await;
        hand.execute(&format!("SELECT 1 FROM idempotency_keys WHERE \"key\" = '{key}' FOR UPDATE")).await;
        Self::Lock(hand)
    }

    async fn clear(self) {
        let (Self::Writer(mut hand) | Self::Lock(mut hand)) = self;
        hand.execute("ROLLBACK").await;
    }
}

#[idempotent(key = "c2-done:<id>", idem = w.idem)]
async fn done(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok("done".to_owned())
}

#[idempotent(key = "c2-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok("sent".to_owned())
}

/// Polls a call until its body has ended and its record is under way, and drops it then.
async fn drop_while_recording<F: Future + Unpin>(mut call: F, gate: &Gate) {
    gate.open();
    let under_way = timeout(Duration::from_millis(100), &mut call).await;
    assert!(under_way.is_err(), "the database does not acknowledge it");
    drop(call);
}

pub(super) async fn c2_an_effect_whose_caller_leaves_during_the_completion_is_recorded(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut call = Box::pin(done(&w, "x", &gate));
    gate.stops(&mut call).await;
    let jam = Jam::of(site, "c2-done:x").await;
    drop_while_recording(call, &gate).await;
    sleep(Duration::from_millis(500)).await;
    jam.clear().await;
    w.row_that_is("c2-done:x", &Status::Completed).await;
    assert_eq!(replayed(done(&w, "x", &gate)).await, "done");
    assert_eq!(site.effects("x"), 1);
}

pub(super) async fn c2_a_recorded_effect_whose_caller_leaves_is_recorded(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    executed(done(&w, "other", &{
        let open = Gate::new();
        open.open();
        open
    }))
    .await;
    let mut call = Box::pin(mail(&w, "x", &gate));
    gate.stops(&mut call).await;
    // Its row is not there yet: a whole writer stands in the way, or a row that is not committed.
    let jam = if site.backend() == Backend::Sqlite {
        Jam::of(site, "c2-mail:x").await
    } else {
        let mut hand = site.connection().await;
        hand.execute("BEGIN; INSERT INTO idempotency_keys (\"key\") VALUES ('c2-mail:x')").await;
        Jam::Lock(hand)
    };
    drop_while_recording(call, &gate).await;
    jam.clear().await;
    w.row_such_that("c2-mail:x", "completed", |row| row.status == Status::Completed).await;
    assert_eq!(replayed(mail(&w, "x", &gate)).await, "sent");
    assert_eq!(site.effects("x"), 1);
}

#[idempotent(key = "c2-failing:<id>", on_stale = "retry", idem = w.idem)]
async fn failing(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

/// A body that is dropped half way is nobody's completion.
pub(super) async fn c2_a_body_that_is_dropped_leaves_its_claim_to_the_policy(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut call = Box::pin(failing(&w, "x", &gate));
    gate.stops(&mut call).await;
    drop(call);
    gate.open();
    assert_eq!(took_over(failing(&w, "x", &gate)).await, "x");

    let gate = Gate::new();
    let mut call = Box::pin(done(&w, "x", &gate));
    gate.stops(&mut call).await;
    drop(call);
    refused(ErrorKind::NeedsReview, done(&w, "x", &gate)).await;
    assert_eq!(site.effects("x"), 3);
}

/// Claims that wait for a busy database when their callers leave are never made.
pub(super) async fn c2_a_claim_that_waits_when_its_caller_leaves_is_withdrawn(site: &Site) {
    let w = site.worker().await;
    executed(brief(&w, 0, &Caller::default())).await;
    let jam = if site.backend() == Backend::Sqlite {
        Jam::of(site, "c2-brief:1").await
    } else {
        let mut hand = site.connection().await;
        hand.execute("BEGIN; INSERT INTO idempotency_keys (\"key\") VALUES ('c2-brief:1')").await;
        Jam::Lock(hand)
    };
    for _ in 0..5 {
        let caller = Caller::default();
        let call = brief(&w, 1, &caller);
        assert!(timeout(Duration::from_millis(40), call).await.is_err(), "the database is busy");
        caller.0.store(true, Ordering::SeqCst);
    }
    assert_eq!(site.effects("1"), 0);
    jam.clear().await;
    let began = Instant::now();
    assert_eq!(without_limit(&w, 1).await, 1);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((site.effects("1"), site.effects("too late")), (1, 0));
    assert_eq!(w.row("c2-brief:1").await.attempt, 1, "a withdrawn claim counts as no attempt");
}

/// The reply to a claim is lost, and its caller with it.
pub(super) async fn c2_a_claim_that_nobody_waits_for_any_more_is_given_back(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let w = site.worker_by(|builder| builder.url(url)).await;
    let other = site.worker().await;
    executed(brief(&w, 0, &Caller::default())).await;

    site.swallow_claims(&proxy);
    let swallowed = proxy.reply_swallowed();
    let caller = Caller::default();
    {
        let mut call = Box::pin(brief(&w, 1, &caller));
        tokio::select! {
            biased;
            () = swallowed => {}
            _ = &mut call => panic!("no reply passes"),
        }
    }
    caller.0.store(true, Ordering::SeqCst);
    assert_eq!(other.row("c2-brief:1").await.status, Status::Processing, "claimed, unbeknown to its caller");
    proxy.forward();
    proxy.cut();
    other.row_that_is("c2-brief:1", &Status::Released).await;
    assert_eq!(executed(brief(&other, 1, &Caller::default())).await, 1);
    assert_eq!((site.effects("1"), site.effects("too late")), (1, 0));
}
