//! A database that serializes, and says so by errors: what is sent again is the statement, never the job.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idem_runtime::{Error, ErrorKind, current, idempotent, record::Status};
use idem_tests::Backend;
use tokio::{task::JoinSet, time::sleep};

use crate::cases::{
    call::{Fault, executed, failed, refused, replayed, took_over},
    gate::Gate,
    site::{Site, Worker},
};

/// Longer than its lease, so that heartbeats and completions meet.
#[idempotent(key = "c9-slow:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn job(w: &Worker, id: u32) -> Result<u32, Error> {
    w.effect(&id.to_string());
    sleep(Duration::from_millis(1_300 + u64::from(id) * 7)).await;
    Ok(id)
}

#[idempotent(key = "c9-quick:<id>", idem = w.idem)]
async fn quick(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

#[idempotent(key = "c9-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

#[idempotent(key = "c9-fails:<id>", on_stale = "retry", idem = w.idem)]
async fn fails(w: &Worker, id: &str, fails: bool) -> Result<String, Fault> {
    w.effect(id);
    if fails { Err(Fault::own("at first")) } else { Ok(id.to_owned()) }
}

#[idempotent(key = "c9-held:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn held(w: &Worker, id: &str, gate: &Gate) -> Result<bool, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(current().is_lost())
}

/// How strictly a new connection's transactions are kept apart, ours included.
async fn isolate(site: &Site, level: &str) {
    site.execute(&format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L',
         current_database(), '{level}'); END $$"
    ))
    .await;
}

const STRICT: [&str; 2] = ["repeatable read", "serializable"];

/// Twenty jobs that outlast their leases, a collector, and somebody who lists the table over and over.
pub(in crate::cases) async fn c9_jobs_at_a_strict_isolation_run_once(site: &Site) {
    for (round, level) in STRICT.into_iter().enumerate() {
        isolate(site, level).await;
        let workers = [site.worker().await, site.worker().await];
        let stop = Arc::new(AtomicBool::new(false));
        let collecting = tokio::spawn({
            let (w, stop) = (workers[0].clone(), Arc::clone(&stop));
            async move {
                while !stop.load(Ordering::SeqCst) {
                    w.idem.purge().await.expect("a purge");
                    sleep(Duration::from_millis(5)).await;
                }
            }
        });
        let listing = tokio::spawn({
            let (mut hand, stop) = (site.connection().await, Arc::clone(&stop));
            async move {
                while !stop.load(Ordering::SeqCst) {
                    // At these levels its own reading may be refused; our writes may not.
                    let _ = hand
                        .try_execute("SELECT count(*) FROM idempotency_keys WHERE status <> 'failed'")
                        .await;
                }
            }
        });
        let first = u32::try_from(round).expect("small") * 100;
        let mut jobs = JoinSet::new();
        for id in first..first + 20 {
            let w = workers[id as usize % 2].clone();
            jobs.spawn(async move { (id, executed(job(&w, id)).await) });
        }
        let looking = async {
            for n in 0..100 {
                let id = first + n % 20;
                let _ = workers[1].idem.lookup(format!("c9-slow:{id}")).await.expect("a look");
                executed(quick(&workers[0], &format!("{level}-{n}").replace(' ', "-"))).await;
            }
        };
        looking.await;
        for (id, value) in jobs.join_all().await {
            assert_eq!(id, value);
        }
        stop.store(true, Ordering::SeqCst);
        collecting.await.expect("no panic");
        listing.await.expect("no panic");
        for id in first..first + 20 {
            assert_eq!(site.effects(&id.to_string()), 1, "{level}");
            assert_eq!(replayed(job(&workers[1], id)).await, id);
        }
    }
}

/// A heartbeat is in the midst of its write when the completion of the same row comes.
pub(in crate::cases) async fn c9_a_heartbeat_never_fails_its_own_completion(site: &Site) {
    // On MySQL our own sessions are at one level, whatever the others' are.
    let levels: &[&str] = match site.backend() {
        Backend::Mysql => &[""],
        _ => &["read committed", "repeatable read", "serializable"],
    };
    for level in levels {
        let site = Site::on(site.backend());
        if site.backend() == Backend::Postgres {
            isolate(&site, level).await;
        }
        let (w, gate) = (site.worker().await, Gate::new());
        let running = tokio::spawn({
            let (w, gate) = (w.clone(), gate.clone());
            async move { executed(held(&w, "x", &gate)).await }
        });
        gate.arrived().await;
        // From now on a heartbeat takes its time, with the row in its hands.
        let dawdling = dawdle(&site).await;
        while site.number(dawdling).await == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        gate.open();
        assert!(!running.await.expect("no panic"), "{level}: its lease stood");
        let row = w.row("c9-held:x").await;
        assert_eq!((row.status, row.lease_until, row.attempt), (Status::Completed, None, 1), "{level}");
        assert_eq!(site.effects("x"), 1);
    }
}

/// Lets a claim that stays one take its time to be written; counts those that do.
async fn dawdle(site: &Site) -> &'static str {
    let dawdles = match site.backend() {
        Backend::Mysql => {
            "CREATE TRIGGER dawdle BEFORE UPDATE ON idempotency_keys FOR EACH ROW
             BEGIN
                IF NEW.status = 'processing' AND OLD.status = 'processing' THEN DO SLEEP(0.2); END IF;
             END"
        }
        _ => {
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF NEW.status = 'processing' AND OLD.status = 'processing' THEN PERFORM pg_sleep(0.2); END IF;
                    RETURN NEW;
                END $$;
             CREATE TRIGGER dawdle BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION dawdle()"
        }
    };
    site.execute(dawdles).await;
    match site.backend() {
        Backend::Mysql => {
            "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND state = 'User sleep'"
        }
        _ => {
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'PgSleep'"
        }
    }
}

/// The first few writes that `when` speaks of are refused with one of the two codes in turn.
async fn refuse(site: &Site, operation: &str, when: &str, times: u32) {
    if site.backend() == Backend::Mysql {
        // Its engine knows no transactions, so that it counts what is refused as well.
        site.execute("CREATE TABLE refusals (last_value bigint NOT NULL) ENGINE = MyISAM").await;
        site.execute("INSERT INTO refusals VALUES (0)").await;
        site.execute(&format!(
            "CREATE TRIGGER refuse BEFORE {operation} ON idempotency_keys FOR EACH ROW
             BEGIN
                DECLARE met bigint;
                IF {when} THEN
                    UPDATE refusals SET last_value = last_value + 1;
                    SELECT last_value INTO met FROM refusals;
                    IF met <= {times} AND met % 2 = 1 THEN
                        SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found';
                    ELSEIF met <= {times} THEN
                        SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'Lock wait timeout exceeded';
                    END IF;
                END IF;
             END"
        ))
        .await;
        return;
    }
    site.execute(&format!(
        "CREATE SEQUENCE refusals;
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE n bigint;
            BEGIN
                IF {when} THEN
                    n := nextval('refusals');
                    IF n <= {times} AND n % 2 = 1 THEN
                        RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
                    ELSIF n <= {times} THEN
                        RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01';
                    END IF;
                END IF;
                RETURN NEW;
            END $$;
         CREATE TRIGGER refuse BEFORE {operation} ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION refuse()"
    ))
    .await;
}

async fn refused_in_all(site: &Site) -> i64 {
    site.number("SELECT last_value FROM refusals").await
}

/// How often in a row: within one sending, and so often that the queue has to come again.
const TIMES: [u32; 2] = [3, 30];

pub(in crate::cases) async fn c9_a_completion_that_collided_is_sent_again_and_the_job_is_not(site: &Site) {
    for times in TIMES {
        let site = Site::on(site.backend());
        let w = site.worker().await;
        refuse(&site, "UPDATE", "NEW.status = 'completed'", times).await;
        assert_eq!(executed(quick(&w, "x")).await, "x");
        assert!(refused_in_all(&site).await > i64::from(times), "all were met");
        let row = w.row("c9-quick:x").await;
        assert_eq!((row.status, row.attempt), (Status::Completed, 1));
        assert_eq!(replayed(quick(&w, "x")).await, "x");
        assert_eq!(site.effects("x"), 1);
    }
}

/// In one statement with others.
pub(in crate::cases) async fn c9_completions_that_collided_together_all_count(site: &Site) {
    let w = site.worker().await;
    refuse(site, "UPDATE", "NEW.status = 'completed'", 40).await;
    let mut jobs = JoinSet::new();
    for n in 0..60 {
        let w = w.clone();
        jobs.spawn(async move { executed(quick(&w, &n.to_string())).await });
    }
    assert_eq!(jobs.join_all().await.len(), 60);
    for n in 0..60 {
        assert_eq!(site.effects(&n.to_string()), 1);
        assert_eq!(replayed(quick(&w, &n.to_string())).await, n.to_string());
    }
}

/// The siblings: claims, takeovers, heartbeats, failures, records, people.
pub(in crate::cases) async fn c9_every_other_write_that_collided_is_sent_again(site: &Site) {
    for times in TIMES {
        let claims = Site::on(site.backend());
        let w = claims.worker().await;
        refuse(&claims, "INSERT", "true", times).await;
        assert_eq!(executed(quick(&w, "x")).await, "x");
        assert_eq!(executed(mail(&w, "x")).await, "x");
        assert_eq!((claims.effects("x"), w.row("c9-quick:x").await.attempt), (2, 1));

        let others = Site::on(site.backend());
        let w = others.worker().await;
        refuse(&others, "UPDATE", "NEW.status IN ('released', 'failed', 'needs_review')", times).await;
        failed(fails(&w, "x", true)).await;
        assert_eq!(w.row("c9-fails:x").await.status, Status::Released);
        assert_eq!(executed(fails(&w, "x", false)).await, "x");
        assert!(refused_in_all(&others).await > i64::from(times));

        let takeovers = Site::on(site.backend());
        let (w, gate) = (takeovers.worker().await, Gate::new());
        let mut running = Box::pin(held(&w, "x", &gate));
        gate.stops(&mut running).await;
        takeovers.set("c9-held:x", "lease_until = 1").await;
        let other = takeovers.worker().await;
        let another = match site.backend() {
            Backend::Mysql => "NOT (NEW.owner <=> OLD.owner)",
            _ => "NEW.owner IS DISTINCT FROM OLD.owner",
        };
        refuse(&takeovers, "UPDATE", another, times).await;
        // Another of its heartbeats may keep it alive for a moment.
        let heir = Gate::new();
        heir.open();
        drop(running);
        other.row_such_that("c9-held:x", "stale", |row| row.lease_until <= Some(row.now)).await;
        took_over(held(&other, "x", &heir)).await;
        assert!(refused_in_all(&takeovers).await > i64::from(times));
        assert_eq!(takeovers.effects("x"), 2);

        let people = Site::on(site.backend());
        let w = people.worker().await;
        people
            .execute("INSERT INTO idempotency_keys (\"key\", status) VALUES ('c9-quick:x', 'needs_review')")
            .await;
        refused(ErrorKind::NeedsReview, quick(&w, "x")).await;
        refuse(&people, "UPDATE", "NEW.status = 'released'", times).await;
        let freed = w.idem.resolve("c9-quick:x", idem_runtime::Resolution::Retry).await.expect("an answer");
        assert!(matches!(freed, idem_runtime::Resolved::Changed { .. }), "{freed:?}");
        assert_eq!(
            people.number("SELECT count(*) FROM idempotency_keys_audit").await,
            1,
            "one line for one deed"
        );
        assert_eq!(executed(quick(&w, "x")).await, "x");
    }
}

/// Heartbeats that collide again and again, but not for a whole lease.
pub(in crate::cases) async fn c9_heartbeats_that_collided_are_sent_again(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    refuse(site, "UPDATE", "NEW.status = 'processing' AND OLD.status = 'processing'", 12).await;
    let claimed = w.row("c9-held:x").await;
    let beyond = Some(claimed.now + 2_500_000);
    let row = w.row_such_that("c9-held:x", "older than its lease", |row| Some(row.now) > beyond).await;
    assert!(row.lease_until > claimed.lease_until && row.lease_until > Some(row.now), "{row:?}");
    assert!(refused_in_all(site).await > 12);
    gate.open();
    assert!(!running.await.expect("no panic"), "it was not told that its lease was lost");
    assert_eq!(site.effects("x"), 1);
}

/// A database that refuses for good is no collision: the callers hear of it, and the job has run once.
pub(in crate::cases) async fn c9_collisions_without_end_make_the_completion_unknown(site: &Site) {
    let w = site.worker_by(|builder| builder.store_timeout(Duration::from_millis(500))).await;
    let (gate, id) = (Gate::new(), "x");
    gate.open();
    refuse(site, "UPDATE", "NEW.status = 'completed'", 1_000_000).await;
    let error = refused(ErrorKind::CompletionUnknown, held(&w, id, &gate)).await;
    assert!(error.is_retryable(), "{error}");
    assert_eq!(w.row("c9-held:x").await.status, Status::Processing);
    assert_eq!(site.effects(id), 1);
}
