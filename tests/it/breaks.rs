//! What must hold where several things go wrong at once: a reply that is lost and a caller who comes in between, a
//! person who decides while the holder is alive, a process that leaves while a call waits.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use idem_runtime::{Alert, Error, ErrorKind, Resolution, Resolved, current, idempotent, record::Status};
use idem_tests::{Backend, Proxy};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::{sleep, timeout};

use crate::cases::{
    call::{Fault, executed, refused, replayed},
    gate::Gate,
    site::{Site, Worker},
};

macro_rules! breaks {
    ($($name:ident: $backend:ident { $($case:ident)+ })+) => {$(
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::Site::plays(super::Backend::$backend, super::$case).await;
                }
            )+
        }
    )+};
}

breaks! {
    memory: Memory {
        a_call_that_waits_does_not_start_after_a_shutdown
        a_body_that_runs_during_a_shutdown_may_call_another_job
        a_panic_after_the_body_does_not_free_the_key
        an_alert_that_reached_nobody_is_raised_again
        alerts_that_come_together_are_told_as_one
        limits_without_end_are_limits
    }
    sqlite: Sqlite {
        a_key_in_review_is_not_freed_while_its_holder_is_alive
        a_result_that_a_person_recorded_is_not_taken_for_ones_own
        a_call_that_waits_does_not_start_after_a_shutdown
        a_body_that_runs_during_a_shutdown_may_call_another_job
        a_panic_after_the_body_does_not_free_the_key
        a_claim_that_was_acknowledged_late_is_renewed_in_time
        a_lease_that_was_renewed_after_its_end_is_alive_again
        a_resolution_waits_for_a_foreign_writer
        a_state_that_is_not_ours_is_not_asked_for_again_at_once
        an_alert_that_reached_nobody_is_raised_again
        alerts_that_come_together_are_told_as_one
        limits_without_end_are_limits
    }
    postgres: Postgres {
        a_key_in_review_is_not_freed_while_its_holder_is_alive
        a_result_that_a_person_recorded_is_not_taken_for_ones_own
        a_call_that_waits_does_not_start_after_a_shutdown
        a_body_that_runs_during_a_shutdown_may_call_another_job
        a_panic_after_the_body_does_not_free_the_key
        a_claim_whose_reply_was_lost_is_its_callers_whoever_meets_it_first
        a_claim_that_nobody_heard_of_is_given_back_when_the_database_is_there_again
        a_lease_counts_from_the_first_sending_whatever_was_locked_since
        a_resolution_waits_for_a_foreign_writer
        a_database_that_cannot_hold_every_text_is_refused
        a_state_that_is_not_ours_is_not_asked_for_again_at_once
        an_alert_that_reached_nobody_is_raised_again
        alerts_that_come_together_are_told_as_one
        limits_without_end_are_limits
    }
    mysql: Mysql {
        a_key_in_review_is_not_freed_while_its_holder_is_alive
        a_result_that_a_person_recorded_is_not_taken_for_ones_own
        a_call_that_waits_does_not_start_after_a_shutdown
        a_body_that_runs_during_a_shutdown_may_call_another_job
        a_panic_after_the_body_does_not_free_the_key
        a_claim_whose_reply_was_lost_is_its_callers_whoever_meets_it_first
        a_claim_that_nobody_heard_of_is_given_back_when_the_database_is_there_again
        a_lease_counts_from_the_first_sending_whatever_was_locked_since
        a_resolution_waits_for_a_foreign_writer
        a_state_that_is_not_ours_is_not_asked_for_again_at_once
        an_alert_that_reached_nobody_is_raised_again
        alerts_that_come_together_are_told_as_one
        limits_without_end_are_limits
    }
}

#[idempotent(key = "alive:<id>", stale_after = "2s", idem = w.idem)]
async fn alive(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

async fn a_key_in_review_is_not_freed_while_its_holder_is_alive(site: &Site) {
    let (w, other, gate) = (site.worker().await, site.worker().await, Gate::new());
    let holder = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { alive(&w, "a", &gate).await }
    });
    gate.arrived().await;
    // A pause of the whole process, as the others see it.
    site.set("alive:a", "lease_until = 1").await;
    refused(ErrorKind::NeedsReview, alive(&other, "a", &gate)).await;
    let beating = other.row_such_that("alive:a", "renewed", |row| row.lease_until > Some(row.now)).await;
    assert_eq!(beating.status, Status::NeedsReview);

    let freed = other.idem.resolve("alive:a", Resolution::Retry).await.expect("an answer");
    assert!(matches!(&freed, Resolved::Refused { reason, .. } if reason.contains("alive")), "{freed:?}");
    let forgotten = other.idem.forget("alive:a").await.expect("an answer");
    assert!(
        matches!(&forgotten, Resolved::Refused { reason, .. } if reason.contains("alive")),
        "{forgotten:?}"
    );
    assert_eq!(other.row("alive:a").await.status, Status::NeedsReview);

    let forced = loop {
        // A heartbeat may come between the look and the write.
        match other.idem.resolve("alive:a", Resolution::Retry).force().await.expect("an answer") {
            Resolved::Refused { .. } => {}
            forced => break forced,
        }
    };
    assert!(matches!(forced, Resolved::Changed { .. }), "{forced:?}");
    gate.open();
    let late = holder.await.expect("no panic").expect_err("its claim was taken");
    assert_eq!(late.kind(), ErrorKind::ClaimLost);
    assert_eq!(site.effects("a"), 1);
}

#[idempotent(key = "word:<id>", idem = w.idem)]
async fn word(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok("its own".to_owned())
}

async fn a_result_that_a_person_recorded_is_not_taken_for_ones_own(site: &Site) {
    let (w, other, gate) = (site.worker().await, site.worker().await, Gate::new());
    let holder = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { word(&w, "a", &gate).await }
    });
    gate.arrived().await;
    site.set("word:a", "lease_until = 1").await;
    let found_out = Resolution::Completed(Some("a person's".into()));
    let resolved = other.idem.resolve("word:a", found_out).await.expect("an answer");
    assert!(matches!(resolved, Resolved::Changed { .. }), "{resolved:?}");
    gate.open();
    let late = holder.await.expect("no panic").expect_err("another result is recorded");
    assert_eq!(late.kind(), ErrorKind::ClaimLost);
    assert_eq!(replayed(word(&other, "a", &gate)).await, "a person's");
}

#[idempotent(key = "queue:<id>", on_error = "release", on_busy = "wait", wait_for = "20s", idem = w.idem)]
async fn queued(w: &Worker, id: &str, gate: &Gate) -> Result<(), Fault> {
    w.effect(id);
    gate.pass().await;
    Err(Fault::own("not this time"))
}

async fn a_call_that_waits_does_not_start_after_a_shutdown(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let spawn = || {
        let (w, gate) = (w.clone(), gate.clone());
        tokio::spawn(async move { queued(&w, "a", &gate).await })
    };
    let first = spawn();
    gate.arrived().await;
    let waiting = spawn();
    sleep(Duration::from_millis(100)).await;

    let running = w.idem.shutdown(Duration::from_millis(10)).await;
    assert_eq!(running, ["queue:a"]);
    gate.open();
    first.await.expect("no panic").expect_err("its own error");
    gate.open();
    let error = waiting.await.expect("no panic").expect_err("not started").idem();
    assert_eq!(error.kind(), ErrorKind::ShuttingDown);
    assert_eq!(site.effects("a"), 1);
}

#[idempotent(key = "outer:<id>", idem = w.idem)]
async fn outer(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    gate.pass().await;
    heard(w, id).await
}

async fn a_body_that_runs_during_a_shutdown_may_call_another_job(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { outer(&w, "a", &gate).await }
    });
    gate.arrived().await;
    assert_eq!(w.idem.shutdown(Duration::from_millis(10)).await, ["outer:a"]);
    gate.open();
    assert_eq!(running.await.expect("no panic").expect("done"), "a");
    refused(ErrorKind::ShuttingDown, heard(&w, "b")).await;
    assert!(w.idem.shutdown(Duration::from_secs(30)).await.is_empty());
}

/// A result whose `Serialize` is broken.
#[derive(Debug, serde::Deserialize)]
struct Broken;

impl serde::Serialize for Broken {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("cannot be written")
    }
}

#[idempotent(key = "unwritable:<id>", on_error = "by_mark", idem = w.idem)]
async fn unwritable(w: &Worker, id: &str) -> Result<Broken, Error> {
    w.effect(id);
    Ok(Broken)
}

/// No mark was set, and yet the effect may have happened: the body came to its end.
async fn a_panic_after_the_body_does_not_free_the_key(site: &Site) {
    let w = site.worker().await;
    let panicked = tokio::spawn({
        let w = w.clone();
        async move { unwritable(&w, "a").await }
    });
    panicked.await.expect_err("a panic");
    refused(ErrorKind::NeedsReview, unwritable(&w, "a")).await;
    assert_eq!(site.effects("a"), 1);
}

#[idempotent(key = "heard:<id>", idem = w.idem)]
async fn heard(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

/// The claim of the first caller is made and not heard of; the second caller's statement is the one that finds it.
async fn a_claim_whose_reply_was_lost_is_its_callers_whoever_meets_it_first(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let w = site.worker_by(|builder| builder.url(url)).await;
    executed(heard(&w, "warm")).await;

    site.swallow_claims(&proxy);
    let swallowed = proxy.reply_swallowed();
    let spawn = || {
        let w = w.clone();
        tokio::spawn(async move { heard(&w, "a").await })
    };
    let first = spawn();
    swallowed.await;
    let second = spawn();
    sleep(Duration::from_millis(50)).await;
    proxy.forward();
    proxy.delay(Duration::from_millis(30));
    proxy.cut();

    assert_eq!(first.await.expect("no panic").expect("its own claim"), "a");
    if let Err(error) = second.await.expect("no panic") {
        assert_eq!(error.kind(), ErrorKind::InProgress);
    }
    assert_eq!(site.effects("a"), 1);
}

async fn a_claim_that_nobody_heard_of_is_given_back_when_the_database_is_there_again(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let impatient =
        |builder: idem_runtime::Builder| builder.url(url).store_timeout(Duration::from_millis(500));
    let (w, other) = (site.worker_by(impatient).await, site.worker().await);
    executed(heard(&w, "warm")).await;

    site.swallow_claims(&proxy);
    let swallowed = proxy.reply_swallowed();
    let call = tokio::spawn({
        let w = w.clone();
        async move { heard(&w, "a").await }
    });
    swallowed.await;
    proxy.refuse();
    let error = call.await.expect("no panic").expect_err("the database is gone");
    assert_eq!(error.kind(), ErrorKind::Store);
    refused(ErrorKind::InProgress, heard(&other, "a")).await;

    proxy.forward();
    other.row_that_is("heard:a", &Status::Released).await;
    executed(heard(&other, "a")).await;
    assert_eq!(site.effects("a"), 1);
}

#[idempotent(key = "slow:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn slowly_claimed(w: &Worker, id: &str) -> Result<bool, Error> {
    let row = w.row(current().key().as_str()).await;
    Ok(row.lease_until > Some(row.now))
}

/// The server is slow to commit the first sending; those after it meet its lock, and then its row.
async fn a_lease_counts_from_the_first_sending_whatever_was_locked_since(site: &Site) {
    let w = site.worker().await;
    let dawdle = match site.backend() {
        Backend::Mysql => "CREATE TRIGGER dawdle AFTER INSERT ON idempotency_keys FOR EACH ROW DO SLEEP(1.5)",
        _ => {
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END $$;
            CREATE TRIGGER dawdle AFTER INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION dawdle()"
        }
    };
    site.execute(dawdle).await;
    assert!(executed(slowly_claimed(&w, "a")).await, "the body runs under a lease that has not passed");
}

#[idempotent(key = "renewed:<id>", stale_after = "3s", on_stale = "retry", idem = w.idem)]
async fn renewed(w: &Worker, id: &str) -> Result<(), Error> {
    w.effect(id);
    sleep(Duration::from_millis(1_500)).await;
    Ok(())
}

async fn a_claim_that_was_acknowledged_late_is_renewed_in_time(site: &Site) {
    let w = site.worker().await;
    let mut foreign = site.connection().await;
    foreign.execute("BEGIN IMMEDIATE").await;
    let call = tokio::spawn({
        let w = w.clone();
        async move { executed(renewed(&w, "a")).await }
    });
    sleep(Duration::from_millis(2_200)).await;
    foreign.execute("COMMIT").await;
    call.await.expect("the claim stands");
    assert_eq!(site.effects("a"), 1);
}

#[idempotent(key = "revived:<id>", stale_after = "1s", idem = w.idem)]
async fn revived(w: &Worker, id: &str, gate: &Gate) -> Result<bool, Error> {
    w.effect(id);
    current().lost().await;
    gate.pass().await;
    let patience = Instant::now() + Duration::from_secs(10);
    while current().is_lost() && Instant::now() < patience {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(current().is_lost())
}

async fn a_lease_that_was_renewed_after_its_end_is_alive_again(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let call = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(revived(&w, "a", &gate)).await }
    });
    w.row_that_is("revived:a", &Status::Processing).await;
    let mut foreign = site.connection().await;
    foreign.execute("BEGIN IMMEDIATE").await;
    gate.arrived().await;
    foreign.execute("COMMIT").await;
    gate.open();
    assert!(!call.await.expect("no panic"), "the database has confirmed the claim");
}

async fn a_resolution_waits_for_a_foreign_writer(site: &Site) {
    let w = site.worker().await;
    site.execute("INSERT INTO idempotency_keys (\"key\", status) VALUES ('heard:a', 'needs_review')").await;
    let mut foreign = site.connection().await;
    foreign.execute(if site.backend() == Backend::Sqlite { "BEGIN IMMEDIATE" } else { "BEGIN" }).await;
    foreign.execute("UPDATE idempotency_keys SET worker = worker WHERE \"key\" = 'heard:a'").await;
    let resolving = tokio::spawn({
        let idem = w.idem.clone();
        async move { idem.resolve("heard:a", Resolution::Retry).await }
    });
    sleep(Duration::from_millis(600)).await;
    foreign.execute("COMMIT").await;
    let resolved = resolving.await.expect("no panic").expect("waits as long as a claim does");
    assert!(matches!(resolved, Resolved::Changed { .. }), "{resolved:?}");
    executed(heard(&w, "a")).await;
}

#[idempotent(key = "endless:<id>", mode = "record_after", idem = w.idem)]
async fn recorded(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

async fn limits_without_end_are_limits(site: &Site) {
    let endless = |builder: idem_runtime::Builder| {
        builder
            .store_timeout(Duration::MAX)
            .record_for(Duration::MAX)
            .foreign_stale_after(Duration::MAX)
            .keep_released_for(Duration::MAX)
    };
    let w = site.worker_by(endless).await;
    executed(heard(&w, "a")).await;
    executed(recorded(&w, "a")).await;
    replayed(recorded(&w, "a")).await;
    assert_eq!(site.effects("a"), 2);
}

async fn a_database_that_cannot_hold_every_text_is_refused(site: &Site) {
    let mut server = PgConnection::connect(site.database.url()).await.expect("a connection");
    let name = format!("latin_{}", std::process::id());
    let create =
        format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
    sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut server).await.expect("a database");
    let url = site.database.url().rsplit_once('/').map(|(server, _)| format!("{server}/{name}"));
    let refused = idem_runtime::Idem::connect(&url.expect("a URL with a path")).await;
    let dropped = timeout(
        Duration::from_secs(10),
        sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).execute(&mut server),
    );
    dropped.await.expect("in time").expect("gone");
    let error = refused.expect_err("a result could not be stored");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("UTF8"), "{error}");
}

async fn a_state_that_is_not_ours_is_not_asked_for_again_at_once(site: &Site) {
    let w = site.worker().await;
    site.execute("INSERT INTO idempotency_keys (\"key\", status) VALUES ('heard:a', 'paused')").await;
    let error = refused(ErrorKind::InProgress, heard(&w, "a")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_mins(1)));
}

#[idempotent(key = "broken:<id>", idem = w.idem)]
async fn broken(w: &Worker, id: u32) -> Result<(), Fault> {
    w.effect(&id.to_string());
    Err(Fault::own("nobody knows"))
}

async fn an_alert_that_reached_nobody_is_raised_again(site: &Site) {
    let calls = Arc::new(AtomicUsize::new(0));
    let hook = {
        let calls = Arc::clone(&calls);
        move |_: &[Alert]| assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "the pager is down")
    };
    let often = Duration::from_millis(20);
    let w = site.worker_by(|builder| builder.on_alert(hook).watch_every(often).untold_for(2 * often)).await;
    broken(&w, 1).await.expect_err("its own error");
    let patience = Instant::now() + Duration::from_secs(30);
    while w.row("broken:1").await.alerted_at.is_none() {
        assert!(Instant::now() < patience, "told {} times", calls.load(Ordering::SeqCst));
        refused(ErrorKind::NeedsReview, broken(&w, 1)).await;
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    refused(ErrorKind::NeedsReview, broken(&w, 1)).await;
    sleep(Duration::from_millis(20)).await;
    assert_eq!(calls.load(Ordering::SeqCst), 2, "once a person was told, that is enough");
    assert_eq!(site.effects("1"), 1);
}

async fn alerts_that_come_together_are_told_as_one(site: &Site) {
    let (open, closed) = mpsc::channel::<()>();
    let closed = Mutex::new(closed);
    let (told, tellings) = mpsc::channel();
    let hook = move |alerts: &[Alert]| {
        told.send(alerts.iter().map(|alert| alert.key.clone()).collect::<Vec<_>>()).expect("a listener");
        // The first one waits for a person who takes their time.
        let _ = closed.lock().expect("one thread").recv();
    };
    let w = site.worker_by(|builder| builder.on_alert(hook)).await;
    for id in 0..20 {
        broken(&w, id).await.expect_err("its own error");
        for _ in 0..2 {
            refused(ErrorKind::NeedsReview, broken(&w, id)).await;
        }
    }
    drop(open);
    w.row_such_that("broken:19", "told", |row| row.alerted_at.is_some()).await;
    let tellings: Vec<Vec<String>> = tellings.try_iter().collect();
    assert!(tellings.len() <= 2, "{tellings:?}");
    assert_eq!(tellings.concat(), (0..20).map(|id| format!("broken:{id}")).collect::<Vec<_>>());
}
