//! Garbage collection beside keys that live: what runs is never collected, what expires runs once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use idem_runtime::{
    Error, ErrorKind, Outcome, Resolution, Resolved, idempotent, record::Status, with_outcome,
};
use idem_tests::Backend;
use tokio::{
    sync::Barrier,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use super::{
    call::{executed, refused, replayed, took_over},
    gate::Gate,
    site::{Connected, Site, Worker},
};

#[idempotent(key = "a14:<id>", stale_after = "1s", ttl = "1s", on_stale = "retry", idem = w.idem)]
async fn held(w: &Worker, id: &str, gate: &Gate) -> Result<usize, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(w.effects(id))
}

/// Its value tells which run it is of.
#[idempotent(key = "a14-short:<id>", stale_after = "1s", ttl = "1s", idem = w.idem)]
async fn short(w: &Worker, id: &str) -> Result<usize, Error> {
    w.effect(id);
    Ok(w.effects(id))
}

/// The same, of which no run expires by itself.
#[idempotent(key = "a14-hour:<id>", ttl = "1h", idem = w.idem)]
async fn hourly(w: &Worker, id: &str) -> Result<usize, Error> {
    w.effect(id);
    Ok(w.effects(id))
}

#[idempotent(key = "a14-mail:<id>", mode = "record_after", ttl = "1s", idem = w.idem)]
async fn mail(w: &Worker, id: &str) -> Result<usize, Error> {
    w.effect(id);
    Ok(w.effects(id))
}

#[idempotent(key = "a14-lasting:<id>", stale_after = "2s", idem = w.idem)]
async fn lasting(w: &Worker, id: &str) -> Result<usize, Error> {
    w.effect(id);
    Ok(w.effects(id))
}

#[idempotent(key = "a14-gated:<id>", idem = w.idem)]
async fn gated(w: &Worker, id: &str, gate: &Gate) -> Result<usize, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(w.effects(id))
}

/// Collects without a pause until it is stopped.
struct Collector {
    stop: Arc<AtomicBool>,
    running: JoinHandle<u64>,
}

impl Collector {
    fn of(w: &Worker) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let running = tokio::spawn({
            let (idem, stop) = (w.idem.clone(), Arc::clone(&stop));
            async move {
                let mut rows = 0;
                while !stop.load(Ordering::SeqCst) {
                    rows += idem.purge().await.expect("a purge");
                    sleep(Duration::from_millis(2)).await;
                }
                rows
            }
        });
        Self { stop, running }
    }

    /// How many rows it has collected.
    async fn stops(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.running.await.expect("no panic")
    }
}

pub(super) async fn a14_a_running_row_is_never_collected(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    let collector = Collector::of(&w);
    // Longer than its lease and its ttl.
    let claimed = w.row("a14:x").await;
    let beyond = Some(claimed.now + 1_100_000);
    let row = w.row_such_that("a14:x", "older than its lease", |row| Some(row.now) > beyond).await;
    assert_eq!((row.status, row.owner), (Status::Processing, claimed.owner));
    assert!(row.lease_until > claimed.lease_until);
    gate.open();
    assert_eq!(running.await.expect("no panic"), 1);
    assert_eq!(replayed(held(&w, "x", &gate)).await, 1);
    assert_eq!(collector.stops().await, 0);
}

/// Not even with an expiry of its last life, nor when its lease has ended.
pub(super) async fn a14_a_claim_is_not_collected_whatever_its_times_say(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    let collector = Collector::of(&w);
    site.set("a14:x", "expires_at = 1").await;
    w.row_such_that("a14:x", "renewed", |row| row.lease_until > Some(row.now)).await;
    gate.open();
    assert_eq!(running.await.expect("no panic"), 1);

    for (id, columns) in [
        ("stale", "status = 'processing', lease_until = 1, expires_at = 1"),
        ("review", "status = 'needs_review', lease_until = 1, expires_at = 1"),
        ("foreign", "status = 'paused', lease_until = 1, expires_at = 1"),
        ("ageless", "status = 'completed', expires_at = NULL, completed_at = NULL"),
    ] {
        site.execute(&format!("INSERT INTO idempotency_keys (\"key\", fence) VALUES ('a14:{id}', 7)")).await;
        site.set(&format!("a14:{id}"), columns).await;
    }
    sleep(Duration::from_millis(100)).await;
    for id in ["stale", "review", "foreign", "ageless"] {
        assert!(w.find(&format!("a14:{id}")).await.is_some(), "{id}");
    }
    assert_eq!(collector.stops().await, 0);
}

const CALLERS: usize = 20;
const ROUNDS: usize = 15;

/// Twenty callers ask on and on while the key reaches the end of its time and two collectors are at it.
pub(super) async fn a14_at_its_expiry_a_key_runs_once(site: &Site) {
    let workers = [site.worker().await, site.worker().await];
    let collectors = [Collector::of(&workers[0]), Collector::of(&workers[1])];
    for round in 0..ROUNDS {
        let id = round.to_string();
        assert_eq!(executed(short(&workers[0], &id)).await, 1);
        let soon = format!("expires_at = {} + 40000", site.now());
        site.set(&format!("a14-short:{id}"), &soon).await;
        let start = Arc::new(Barrier::new(CALLERS));
        let mut callers = JoinSet::new();
        for n in 0..CALLERS {
            let (w, id, start) = (workers[n % 2].clone(), id.clone(), Arc::clone(&start));
            callers.spawn(async move {
                start.wait().await;
                let mut runs = 0;
                loop {
                    match with_outcome(short(&w, &id)).await {
                        (Ok(1), Some(Outcome::Replayed)) | (Err(Error::InProgress { .. }), _) => {}
                        (Ok(2), Some(Outcome::Replayed)) => return runs,
                        (Ok(2), Some(Outcome::Executed)) => runs += 1,
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        let runs: usize = callers.join_all().await.into_iter().sum();
        assert_eq!((runs, site.effects(&id)), (1, 2), "round {round}");
    }
    for collector in collectors {
        collector.stops().await;
    }
}

/// The same for what is recorded afterwards: at least once, and never no record.
pub(super) async fn a14_at_its_expiry_an_effect_is_recorded_anew(site: &Site) {
    let w = site.worker().await;
    let collectors = [Collector::of(&w), Collector::of(&w)];
    for round in 0..ROUNDS {
        let id = round.to_string();
        executed(mail(&w, &id)).await;
        site.set(&format!("a14-mail:{id}"), "expires_at = 1").await;
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (w, id) = (w.clone(), id.clone());
            callers.spawn(async move { mail(&w, &id).await.expect("never refused") });
        }
        let values = callers.join_all().await;
        assert!(values.iter().all(|value| *value > 1), "the first one's time is over: {values:?}");
        let kept = replayed(mail(&w, &id)).await;
        assert!(values.contains(&kept), "{kept} {values:?}");
        assert_eq!(w.row(&format!("a14-mail:{id}")).await.status, Status::Completed);
    }
    for collector in collectors {
        collector.stops().await;
    }
}

/// A row that a person has freed is collected while its holder still runs: nothing comes back from the dead.
pub(super) async fn a14_a_row_that_is_collected_under_its_holder_stays_away(site: &Site) {
    let w = site.worker_by(|builder| builder.keep_released_for(Duration::ZERO)).await;
    let gate = Gate::new();
    let mut running = Box::pin(held(&w, "x", &gate));
    gate.stops(&mut running).await;
    let freed = w.idem.resolve("a14:x", Resolution::Retry).force().await.expect("an answer");
    assert!(matches!(freed, Resolved::Changed { .. }), "{freed:?}");
    assert_eq!(w.idem.purge().await.expect("a purge"), 1);
    gate.open();
    let error = running.await.expect_err("its row is gone");
    assert_eq!(error.kind(), ErrorKind::ClaimLost);
    assert!(w.find("a14:x").await.is_none(), "a late completion makes no row");
    gate.open();
    assert_eq!(executed(held(&w, "x", &gate)).await, 2);
}

/// Keys that expired are taken by new claims while they are collected; each has its one new life.
pub(super) async fn a14_expired_keys_are_collected_or_live_anew(site: &Site) {
    const KEYS: usize = 300;
    let w = site.worker().await;
    let mut first = JoinSet::new();
    for n in 0..KEYS {
        let w = w.clone();
        first.spawn(async move { executed(hourly(&w, &n.to_string())).await });
    }
    first.join_all().await;
    site.execute("UPDATE idempotency_keys SET expires_at = 1").await;
    let collectors = [Collector::of(&w), Collector::of(&site.worker().await)];
    let mut second = JoinSet::new();
    for n in 0..KEYS {
        let w = w.clone();
        second.spawn(async move { executed(hourly(&w, &n.to_string())).await });
    }
    assert_eq!(second.join_all().await, vec![2; KEYS]);
    let mut collected = 0;
    for collector in collectors {
        collected += collector.stops().await;
    }
    assert!(collected <= u64::try_from(KEYS).expect("small"), "{collected}");
    for n in 0..KEYS {
        assert_eq!(site.effects(&n.to_string()), 2);
    }
}

/// How many rows are past their time. MySQL takes its time over each, with two processors at hand.
fn many(site: &Site) -> i64 {
    if site.backend() == Backend::Mysql { 60_000 } else { 200_000 }
}

/// So many rows that are past their time.
async fn fill(site: &Site, rows: i64) {
    let numbers = match site.backend() {
        Backend::Memory => panic!("memory knows no SQL"),
        // No recursion there goes deeper than a thousand.
        Backend::Mysql => format!(
            "WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 499),
                 numbers (n) AS (SELECT a.d * 500 + b.d + 1 FROM digits AS a JOIN digits AS b
                     WHERE a.d * 500 + b.d < {rows})"
        ),
        Backend::Sqlite => format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})"
        ),
        Backend::Postgres => {
            format!("WITH numbers AS (SELECT generate_series(1, {rows}) AS n)")
        }
    };
    site.execute(&format!(
        "INSERT INTO idempotency_keys (\"key\", status, owner, fence, completed_at, expires_at)
         {numbers} SELECT concat('a14-old:', n), 'completed', 'f', n, CURRENT_TIMESTAMP, n FROM numbers"
    ))
    .await;
}

const OLD: &str = "SELECT count(*) FROM idempotency_keys WHERE \"key\" LIKE 'a14-old:%'";

/// Claims come and go while the sweep is under way, and its batches are seen one after the other.
pub(super) async fn a14_a_sweep_of_many_rows_goes_in_batches_beside_claims(site: &Site) {
    let w = site.worker().await;
    executed(lasting(&w, "before")).await;
    let many = many(site);
    fill(site, many).await;
    let collectors = [site.worker().await, site.worker().await];
    let swept = Arc::new(AtomicU64::new(0));
    let mut sweeps = JoinSet::new();
    for collector in collectors {
        let swept = Arc::clone(&swept);
        sweeps.spawn(async move {
            let rows = collector.idem.purge().await.expect("a purge");
            swept.fetch_add(rows, Ordering::SeqCst);
        });
    }
    let mut claims = 0;
    let mut seen = vec![many];
    while !sweeps.is_empty() {
        while sweeps.try_join_next().is_some() {}
        for _ in 0..10 {
            executed(lasting(&w, &format!("beside-{claims}"))).await;
            claims += 1;
        }
        let left = site.number(OLD).await;
        assert!(left <= seen[seen.len() - 1], "{seen:?} {left}");
        seen.push(left);
    }
    sweeps.join_all().await;
    seen.dedup();
    assert!(claims >= 20, "{claims} claims during the sweep");
    assert!(seen.len() > 3, "one piece: {seen:?}");
    // Of two who pass over each other's rows, either may leave some behind.
    let rest = w.idem.purge().await.expect("a purge");
    assert_eq!(swept.load(Ordering::SeqCst) + rest, many.unsigned_abs());
    assert_eq!(site.number(OLD).await, 0);
    assert_eq!(replayed(lasting(&w, "before")).await, 1);
    assert_eq!(replayed(lasting(&w, "beside-0")).await, 1);
}

/// Keeps those waiting who delete a row, in the midst of it.
struct Bar {
    hand: Connected,
    backend: Backend,
}

impl Bar {
    /// Before rows of which this is true.
    async fn before(site: &Site, condition: &str) -> Self {
        let (mut hand, backend) = (site.connection().await, site.backend());
        if backend == Backend::Mysql {
            // Such locks are the whole server's: the name of the database makes it one's own.
            hand.execute("DO GET_LOCK(database(), 0)").await;
            hand.execute(&format!(
                "CREATE TRIGGER bar BEFORE DELETE ON idempotency_keys FOR EACH ROW
                 BEGIN
                    IF {condition} THEN DO GET_LOCK(database(), 60); DO RELEASE_LOCK(database()); END IF;
                 END"
            ))
            .await;
        } else {
            hand.execute("SELECT pg_advisory_lock(14)").await;
            hand.execute(&format!(
                "CREATE FUNCTION bar() RETURNS trigger LANGUAGE plpgsql AS $$
                    BEGIN
                        IF {condition} THEN PERFORM pg_advisory_xact_lock(14); END IF;
                        RETURN OLD;
                    END $$;
                 CREATE TRIGGER bar BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION bar()"
            ))
            .await;
        }
        Self { hand, backend }
    }

    /// A connection that waits.
    async fn waiting(&mut self) -> Option<i64> {
        let waiting = match self.backend {
            Backend::Mysql => {
                "SELECT CAST(COALESCE(min(id), 0) AS SIGNED) FROM information_schema.processlist
                 WHERE db = database() AND state = 'User lock'"
            }
            _ => {
                "SELECT COALESCE(min(pid), 0)::bigint FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event = 'advisory'"
            }
        };
        Some(self.hand.number(waiting).await).filter(|connection| *connection != 0)
    }

    /// Ends a connection that waits.
    async fn end(&mut self, connection: i64) {
        let end = match self.backend {
            Backend::Mysql => format!("KILL {connection}"),
            _ => format!("SELECT pg_terminate_backend({connection}, 10000)"),
        };
        self.hand.execute(&end).await;
    }

    async fn lift(&mut self) {
        let lift = match self.backend {
            Backend::Mysql => "DO RELEASE_LOCK(database())",
            _ => "SELECT pg_advisory_unlock(14)",
        };
        self.hand.execute(lift).await;
    }
}

/// A batch that takes its time holds the rows it deletes, and nothing else.
pub(super) async fn a14_a_slow_collector_delays_its_own_keys_alone(site: &Site) {
    let w = site.worker_by(|builder| builder.store_timeout(Duration::from_mins(1))).await;
    executed(lasting(&w, "old")).await;
    site.set("a14-lasting:old", "expires_at = 1").await;
    let gate = Gate::new();
    let mut running = Box::pin(gated(&w, "midway", &gate));
    gate.stops(&mut running).await;
    let mut bar = Bar::before(site, "1 = 1").await;
    let purging = tokio::spawn({
        let collector = site.worker().await;
        async move { collector.idem.purge().await.expect("a purge") }
    });
    while bar.waiting().await.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    let its_own = tokio::spawn({
        let w = w.clone();
        async move { executed(lasting(&w, "old")).await }
    });
    for n in 0..30 {
        executed(lasting(&w, &n.to_string())).await;
    }
    gate.open();
    assert_eq!(running.await.expect("done"), 1);
    let second = site.worker().await;
    assert_eq!(second.idem.purge().await.expect("a purge"), 0, "what another one has is passed over");
    assert!(!purging.is_finished() && !its_own.is_finished(), "all that happened beside it");
    bar.lift().await;
    assert_eq!(purging.await.expect("no panic"), 1);
    assert_eq!(its_own.await.expect("no panic"), 2, "its own key lives anew afterwards");
}

/// A collector dies in the midst of a batch: what it had is there still, and the next one takes it.
pub(super) async fn a14_a_collector_that_dies_leaves_its_batch_to_the_next(site: &Site) {
    let w = site.worker().await;
    executed(short(&w, "x")).await;
    fill(site, 80).await;
    site.set("a14-short:x", "expires_at = 1").await;
    let mut bar = Bar::before(site, "OLD.\"key\" = 'a14-old:80'").await;
    let purging = tokio::spawn({
        let collector = site.worker_by(|builder| builder.store_timeout(Duration::from_millis(500))).await;
        async move { collector.idem.purge().await }
    });
    let mut ended = 0;
    while !purging.is_finished() {
        if let Some(connection) = bar.waiting().await {
            bar.end(connection).await;
            ended += 1;
        }
        sleep(Duration::from_millis(5)).await;
    }
    assert!(ended > 0, "in the midst of a batch");
    let error = purging.await.expect("no panic").expect_err("its connection was ended");
    assert!(error.is_retryable(), "{error}");
    assert_eq!(site.number(OLD).await, 80);
    bar.lift().await;
    assert_eq!(w.idem.purge().await.expect("a purge"), 81);
    assert_eq!(executed(short(&w, "x")).await, 2);
}

/// A clock that was set back: fences of rows that are collected lie ahead of it, and new ones pass them all the same,
/// also those of claims that met the collection half way.
pub(super) async fn a14_a_fence_passes_the_collected_one_in_the_midst_of_a_collection(site: &Site) {
    let w = site.worker().await;
    // Long enough for a claim to come in between, and short enough for it to wait for the end.
    site.execute(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_sleep(0.03); RETURN NULL; END $$;
         CREATE TRIGGER dawdle AFTER DELETE ON idempotency_keys FOR EACH STATEMENT EXECUTE FUNCTION dawdle()",
    )
    .await;
    for round in 0..40_i64 {
        let ids = [format!("{round}-a"), format!("{round}-b")];
        let ahead = format!("expires_at = 1, fence = {} + 3600000000 * {}", site.now(), round + 1);
        for id in &ids {
            executed(short(&w, id)).await;
            site.set(&format!("a14-short:{id}"), &ahead).await;
        }
        let old = w.row(&format!("a14-short:{}", ids[0])).await.fence;
        let purging = tokio::spawn({
            let idem = w.idem.clone();
            async move { idem.purge().await.expect("a purge") }
        });
        sleep(Duration::from_millis(u64::try_from(round % 10).expect("small"))).await;
        let again = ids.clone().map(|id| {
            let w = w.clone();
            tokio::spawn(async move { executed(short(&w, &id)).await })
        });
        for call in again {
            assert_eq!(call.await.expect("no panic"), 2);
        }
        purging.await.expect("no panic");
        for id in &ids {
            let new = w.row(&format!("a14-short:{id}")).await.fence;
            assert!(new > old, "round {round}: {new} after {old}");
        }
    }
}

/// The last sign of a key is what its takeover needs: a claim whose holder died is not collected away.
pub(super) async fn a14_a_claim_whose_holder_died_waits_for_its_heir(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut running = Box::pin(held(&w, "x", &gate));
    gate.stops(&mut running).await;
    drop(running);
    w.row_such_that("a14:x", "stale", |row| row.lease_until <= Some(row.now)).await;
    for _ in 0..3 {
        assert_eq!(w.idem.purge().await.expect("a purge"), 0);
    }
    gate.open();
    assert_eq!(took_over(held(&w, "x", &gate)).await, 2);
    refused(ErrorKind::NeedsReview, async {
        site.set("a14:x", "status = 'needs_review', expires_at = 1").await;
        assert_eq!(w.idem.purge().await.expect("a purge"), 0);
        held(&w, "x", &gate).await
    })
    .await;
}
