//! A store that goes away: while a body runs, while its ending is recorded, or before it begins.

use std::time::{Duration, Instant};

use idem_runtime::{Builder, Error, ErrorKind, idempotent, record::Status};
use idem_tests::Proxy;
use tokio::time::{sleep, timeout};

use super::SOON;
use crate::cases::{
    call::{Fault, executed, refused, replayed},
    gate::Gate,
    site::{Site, Worker},
};

#[idempotent(key = "bad-away:<id>", stale_after = "2s", idem = w.idem)]
async fn away(w: &Worker, id: &str, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    gate.pass().await;
    if id == "fails" { Err(Fault::own("down")) } else { Ok("the receipt".to_owned()) }
}

#[idempotent(key = "bad-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    gate.pass().await;
    Ok("the receipt".to_owned())
}

/// Patient enough for what is to come back, and no longer.
fn impatient(builder: Builder) -> Builder {
    builder.store_timeout(Duration::from_millis(700)).record_for(Duration::from_millis(700))
}

const AWAY: &str = "ALTER TABLE idempotency_keys RENAME TO idempotency_keys_away";
const BACK: &str = "ALTER TABLE idempotency_keys_away RENAME TO idempotency_keys";

/// Bodies of both modes, in their midst.
struct Midway {
    away: tokio::task::JoinHandle<Result<String, Fault>>,
    mail: tokio::task::JoinHandle<Result<String, Fault>>,
    fails: tokio::task::JoinHandle<Result<String, Fault>>,
    gate: Gate,
}

impl Midway {
    async fn of(w: &Worker) -> Self {
        let gate = Gate::new();
        let call = |id: &'static str| {
            let (w, gate) = (w.clone(), gate.clone());
            tokio::spawn(async move {
                if id == "mail" { mail(&w, id, &gate).await } else { away(&w, id, &gate).await }
            })
        };
        let midway =
            Self { away: call("away"), mail: call("mail"), fails: call("fails"), gate: gate.clone() };
        for _ in 0..3 {
            gate.arrived().await;
        }
        midway
    }

    fn go_on(&self) {
        for _ in 0..3 {
            self.gate.open();
        }
    }

    /// The store came back in time.
    async fn ends_well(self, w: &Worker) {
        assert_eq!(self.away.await.expect("no panic").expect("a value"), "the receipt");
        assert_eq!(self.mail.await.expect("no panic").expect("a value"), "the receipt");
        assert_eq!(self.fails.await.expect("no panic").expect_err("its own").to_string(), "down");
        assert_eq!(w.row("bad-away:away").await.status, Status::Completed);
        assert_eq!(w.row("bad-mail:mail").await.status, Status::Completed);
        assert_eq!(replayed(away(w, "away", &self.gate)).await, "the receipt");
        assert_eq!(replayed(mail(w, "mail", &self.gate)).await, "the receipt");
        refused(ErrorKind::NeedsReview, away(w, "fails", &self.gate)).await;
    }

    /// It did not: nobody hears of success, and the value is there for whoever looks into it.
    async fn ends_unknown(self) {
        for call in [self.away, self.mail] {
            let error = call.await.expect("no panic").expect_err("no silent success").idem();
            assert!(error.is_retryable());
            let Error::CompletionUnknown { key, result, .. } = error else { panic!("{error}") };
            assert!(key.as_str().starts_with("bad-"));
            assert_eq!(result.as_deref(), Some("\"the receipt\""));
        }
        assert_eq!(self.fails.await.expect("no panic").expect_err("its own").to_string(), "down");
    }
}

pub(super) async fn a_table_that_is_away_during_the_body_is_waited_for(site: &Site) {
    let w = site.worker().await;
    let midway = Midway::of(&w).await;
    site.execute(AWAY).await;
    midway.go_on();
    sleep(Duration::from_millis(600)).await;
    assert!(!midway.away.is_finished() && !midway.mail.is_finished());
    site.execute(BACK).await;
    midway.ends_well(&w).await;
    assert_eq!(site.ledger.total(), 3);
}

pub(super) async fn a_table_that_stays_away_makes_the_completion_unknown(site: &Site) {
    let w = site.worker_by(impatient).await;
    let midway = Midway::of(&w).await;
    site.execute(AWAY).await;
    midway.go_on();
    midway.ends_unknown().await;
    site.execute(BACK).await;

    // The claim says that something is not as it should be; the effect of `record_after` may repeat.
    let gate = Gate::new();
    gate.open();
    w.row_such_that("bad-away:away", "stale", |row| row.lease_until < Some(row.now)).await;
    refused(ErrorKind::NeedsReview, away(&w, "away", &gate)).await;
    assert_eq!(executed(mail(&w, "mail", &gate)).await, "the receipt");
    assert_eq!((site.effects("away"), site.effects("mail")), (1, 2));
}

/// A worker whose way to the server leads through a proxy.
async fn remote(site: &Site, set: impl FnOnce(Builder) -> Builder) -> (Proxy, Worker) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let w = site.worker_by(|builder| set(builder.url(url))).await;
    (proxy, w)
}

pub(super) async fn a_server_that_is_away_during_the_body_is_waited_for(site: &Site) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let midway = Midway::of(&w).await;
    proxy.refuse();
    midway.go_on();
    sleep(Duration::from_millis(600)).await;
    assert!(!midway.away.is_finished() && !midway.mail.is_finished());
    proxy.forward();
    midway.ends_well(&w).await;
    assert_eq!(site.ledger.total(), 3);
}

pub(super) async fn a_server_that_stays_away_makes_the_completion_unknown(site: &Site) {
    let (proxy, w) = remote(site, impatient).await;
    let midway = Midway::of(&w).await;
    proxy.blackhole();
    midway.go_on();
    timeout(SOON, midway.ends_unknown()).await.expect("in time, whatever TCP says");
    proxy.cut();
    proxy.forward();
    let gate = Gate::new();
    gate.open();
    w.row_such_that("bad-away:away", "stale", |row| row.lease_until < Some(row.now)).await;
    refused(ErrorKind::NeedsReview, away(&w, "away", &gate)).await;
    assert_eq!(site.effects("away"), 1);
}

pub(super) async fn a_completion_whose_reply_is_lost_is_recognised(site: &Site) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let midway = Midway::of(&w).await;
    let swallowed = proxy.reply_swallowed();
    proxy.swallow_replies();
    midway.go_on();
    swallowed.await;
    sleep(Duration::from_millis(100)).await;
    proxy.forward();
    proxy.cut();
    midway.ends_well(&w).await;
    assert_eq!(site.ledger.total(), 3);
}

pub(super) async fn a_server_that_turns_read_only_is_waited_for(site: &Site) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let url = site.database.url_through(proxy.address()).expect("a server");
    let hurried = site.worker_by(|builder| impatient(builder.url(url))).await;
    let midway = Midway::of(&w).await;
    // For every session that begins from now on.
    let read_only = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
         current_database()); END $$";
    site.execute(read_only).await;
    proxy.cut();
    midway.go_on();
    let gate = Gate::new();
    let error = refused(ErrorKind::Store, away(&hurried, "new", &gate)).await.idem();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(site.effects("new"), 0, "what is refused does not run");
    let mut hand = site.connection().await;
    hand.execute("SET default_transaction_read_only = off").await;
    hand.execute(&read_only.replace("= on", "= off")).await;
    proxy.cut();
    midway.ends_well(&w).await;
}

#[idempotent(key = "bad-retry:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn retried(w: &Worker, id: &str, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    gate.pass().await;
    Ok("the receipt".to_owned())
}

#[idempotent(key = "bad-alert:<id>", stale_after = "1s", idem = w.idem)]
async fn alerted(w: &Worker, id: &str, gate: &Gate) -> Result<bool, Fault> {
    w.effect(id);
    let lost = idem_runtime::current();
    lost.lost().await;
    gate.pass().await;
    Ok(lost.is_lost())
}

/// Nobody confirmed its lease for a whole lease: another may have taken it. Under alert nobody does, and it goes on.
pub(super) async fn a_server_that_is_away_longer_than_the_lease_stops_a_body_that_may_be_retried(
    site: &Site,
) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let gate = Gate::new();
    let call = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { refused(ErrorKind::ClaimLost, retried(&w, "x", &gate)).await }
    });
    let alert = tokio::spawn({
        let (w, gate) = (w.clone(), Gate::new());
        gate.open();
        async move { executed(alerted(&w, "y", &gate)).await }
    });
    gate.arrived().await;
    while site.effects("y") == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    proxy.blackhole();
    timeout(SOON, call).await.expect("at the end of its lease").expect("no panic");
    proxy.cut();
    proxy.forward();
    timeout(SOON, alert).await.expect("goes on").expect("no panic");
    assert_eq!(w.row("bad-alert:y").await.status, Status::Completed);
}

pub(super) async fn a_store_that_is_away_runs_nothing(site: &Site) {
    let w = site.worker_by(impatient).await;
    site.execute(AWAY).await;
    let (gate, began) = (Gate::new(), Instant::now());
    for _ in 0..2 {
        let error = refused(ErrorKind::Store, away(&w, "x", &gate)).await.idem();
        assert!(error.is_retryable());
        assert!(error.to_string().contains("idempotency_keys"), "{error}");
        refused(ErrorKind::Store, mail(&w, "x", &gate)).await;
        w.idem.lookup("bad-away:x").await.expect_err("a store that is away");
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(site.ledger.total(), 0);
    site.execute(BACK).await;
    gate.open();
    executed(away(&w, "x", &gate)).await;
}
