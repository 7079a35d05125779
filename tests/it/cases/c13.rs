//! A server that changes its mind: read-only, gone, silent. Nothing runs that cannot be recorded, what ran is recorded
//! when the server is back, and nothing waits for as long as TCP would.

use std::time::{Duration, Instant};

use idem_runtime::{Builder, Error, ErrorKind, current, idempotent, record::Status};
use idem_tests::{Backend, Proxy};
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{
    call::{executed, refused, replayed},
    gate::Gate,
    site::{Site, Worker},
};

/// The lease of the jobs here.
const LEASE: Duration = Duration::from_secs(1);

/// Much less than TCP waits, and much more than anything here should.
const SOON: Duration = Duration::from_secs(40);

#[idempotent(key = "c13:<id>", stale_after = "1s", idem = w.idem)]
async fn charge(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

#[idempotent(key = "c13-retry:<id>", stale_after = "1s", on_stale = "retry", idem = w.idem)]
async fn retried(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

#[idempotent(key = "c13-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str, gate: &Gate) -> Result<String, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

#[idempotent(key = "c13-told:<id>", stale_after = "1s", idem = w.idem)]
async fn told(w: &Worker, id: &str) -> Result<bool, Error> {
    w.effect(id);
    current().lost().await;
    Ok(current().is_lost())
}

fn spawned<T: Send + 'static>(
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> JoinHandle<Result<T, Error>> {
    tokio::spawn(call)
}

/// Bodies of both modes, in their midst.
struct Midway {
    calls: [JoinHandle<Result<String, Error>>; 2],
    gate: Gate,
}

impl Midway {
    async fn of(w: &Worker, id: &'static str) -> Self {
        let gate = Gate::new();
        let (a, b) = ((w.clone(), gate.clone()), (w.clone(), gate.clone()));
        let calls = [
            spawned(async move { charge(&a.0, id, &a.1).await }),
            spawned(async move { mail(&b.0, id, &b.1).await }),
        ];
        for _ in &calls {
            gate.arrived().await;
        }
        Self { calls, gate }
    }

    fn go_on(&self) {
        for _ in &self.calls {
            self.gate.open();
        }
    }

    fn is_finished(&self) -> bool {
        self.calls.iter().any(JoinHandle::is_finished)
    }

    /// The callers hear of success, and so does whoever asks later.
    async fn ends_well(self, w: &Worker, id: &str) {
        for call in self.calls {
            assert_eq!(timeout(SOON, call).await.expect("in time").expect("no panic").expect("done"), id);
        }
        assert_eq!(replayed(charge(w, id, &self.gate)).await, id);
        assert_eq!(replayed(mail(w, id, &self.gate)).await, id);
    }
}

/// What sessions that begin from now on may do.
async fn read_only(site: &Site, on: bool) {
    let setting = if on { "on" } else { "off" };
    let mut hand = site.connection().await;
    if site.backend() == Backend::Mysql {
        // There the setting is the whole server's; what it says to a writer can be said by one table.
        for (name, write) in [("no_claims", "INSERT"), ("no_endings", "UPDATE")] {
            let change = if on {
                format!(
                    "CREATE TRIGGER {name} BEFORE {write} ON idempotency_keys FOR EACH ROW
                     SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server is read-only'"
                )
            } else {
                format!("DROP TRIGGER {name}")
            };
            hand.execute(&change).await;
        }
        return;
    }
    hand.execute("SET default_transaction_read_only = off").await;
    hand.execute(&format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {setting}',
         current_database()); END $$"
    ))
    .await;
}

/// Ends every connection of the workers.
async fn end_connections(site: &Site) -> i64 {
    if site.backend() == Backend::Mysql {
        return kill_connections(site).await;
    }
    site.number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await
}

/// The same where each is ended by a statement of its own.
async fn kill_connections(site: &Site) -> i64 {
    let mut hand = MySqlConnection::connect(site.database.url()).await.expect("a connection");
    let others = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist
        WHERE db = DATABASE() AND id <> CONNECTION_ID()";
    let others: Vec<i64> = sqlx::query_scalar(others).fetch_all(&mut hand).await.expect("a list");
    for id in &others {
        // One that has ended by itself since cannot be ended.
        let _ = sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}"))).execute(&mut hand).await;
    }
    i64::try_from(others.len()).expect("few")
}

/// Sessions that came from somewhere else than the one that asks.
async fn connections(site: &Site) -> i64 {
    let others = match site.backend() {
        Backend::Mysql => {
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        }
        _ => {
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        }
    };
    site.number(others).await
}

/// (a) The primary is a standby now. Nobody cuts its sessions when it is the primary again: those that were told so are
/// not used any more.
pub(super) async fn c13_a_read_only_session_runs_nothing_and_is_not_used_again(site: &Site) {
    let w = site.worker_by(|builder| builder.store_timeout(Duration::from_secs(1))).await;
    let open = Gate::new();
    for _ in 0..10 {
        open.open();
    }
    executed(mail(&w, "before", &open)).await;
    read_only(site, true).await;
    assert!(end_connections(site).await > 0);
    for id in ["a", "b"] {
        let error = refused(ErrorKind::Store, charge(&w, id, &open)).await;
        assert!(error.is_retryable() && error.to_string().contains("read-only"), "{error}");
        assert_eq!(site.effects(id), 0);
    }
    // What was recorded after its effect is asked for by reading alone.
    assert_eq!(replayed(mail(&w, "before", &open)).await, "before");
    read_only(site, false).await;
    for id in ["a", "b"] {
        assert_eq!(executed(charge(&w, id, &open)).await, id);
    }
    if site.backend() == Backend::Mysql {
        return;
    }
    // Nor does a start that meets a standby make do with it.
    read_only(site, true).await;
    let error = idem_runtime::Idem::connect(site.database.url()).await.expect_err("read-only");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("name the primary"), "{error}");
}

/// (b) It becomes a standby while bodies run.
pub(super) async fn c13_a_completion_waits_for_a_server_that_is_read_only(site: &Site) {
    let w = site.worker().await;
    let midway = Midway::of(&w, "x").await;
    read_only(site, true).await;
    end_connections(site).await;
    midway.go_on();
    sleep(2 * LEASE).await;
    assert!(!midway.is_finished(), "nobody has recorded it yet");
    let row = w.row("c13:x").await;
    assert_eq!(row.status, Status::Processing);
    assert!(row.lease_until < Some(row.now), "no heartbeat came through");
    read_only(site, false).await;
    midway.ends_well(&w, "x").await;
    assert_eq!(site.effects("x"), 2, "one of each job");
}

/// (c) Every connection is ended, at every point.
pub(super) async fn c13_connections_that_are_ended_cost_nothing(site: &Site) {
    let w = site.worker().await;
    for (round, id) in ["0", "1", "2", "3", "4", "5", "6", "7"].into_iter().enumerate() {
        let midway = Midway::of(&w, id).await;
        let ended = end_connections(site).await;
        assert!(ended > 0, "round {round}");
        midway.go_on();
        midway.ends_well(&w, id).await;
        assert_eq!(site.effects(id), 2);
    }
    // And while claims, completions and heartbeats are under way.
    let mut calls = JoinSet::new();
    for n in 0..200 {
        let w = w.clone();
        calls.spawn(async move {
            let gate = Gate::new();
            gate.open();
            sleep(Duration::from_millis(n * 5)).await;
            (n, executed(retried(&w, &format!("n{n}"), &gate)).await)
        });
    }
    while calls.len() > 50 {
        end_connections(site).await;
        sleep(Duration::from_millis(20)).await;
        while calls.try_join_next().is_some_and(|call| call.is_ok()) {}
    }
    while let Some(call) = calls.join_next().await {
        call.expect("no panic");
    }
    for n in 0..200 {
        assert_eq!(site.effects(&format!("n{n}")), 1);
    }
    assert!(connections(site).await <= 3, "no more than it keeps");
}

/// A worker whose way to the server leads through a proxy.
async fn remote(site: &Site, set: impl FnOnce(Builder) -> Builder) -> (Proxy, Worker) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let w = site.worker_by(|builder| set(builder.url(url))).await;
    (proxy, w)
}

/// How long the server is silent: until after the lease, and long after everybody has given up.
const SILENCES: [Duration; 2] = [Duration::from_millis(1_500), Duration::from_secs(10)];

/// (d) Silence before the claim: the caller hears in time that the store is away, or the body runs once it is back.
pub(super) async fn c13_silence_during_a_claim_is_no_claim(site: &Site) {
    tokio::join!(silence_during_a_claim(site, SILENCES[0]), silence_during_a_claim(site, SILENCES[1]));
}

async fn silence_during_a_claim(site: &Site, silence: Duration) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let gate = Gate::new();
    for _ in 0..10 {
        gate.open();
    }
    let id = format!("claim-{}", silence.as_millis());
    executed(charge(&w, &format!("{id}-warm"), &gate)).await;
    proxy.blackhole();
    let claim = spawned({
        let (w, id, gate) = (w.clone(), id.clone(), gate.clone());
        async move { retried(&w, &id, &gate).await }
    });
    let look = spawned({
        let (w, id, gate) = (w.clone(), id.clone(), gate.clone());
        async move { mail(&w, &id, &gate).await }
    });
    sleep(silence).await;
    let given_up = (claim.is_finished(), look.is_finished());
    assert_eq!(given_up, (silence > Duration::from_secs(5), silence > Duration::from_secs(5)));
    proxy.forward();
    for call in [claim, look] {
        match timeout(SOON, call).await.expect("in time").expect("no panic") {
            Ok(value) => assert_eq!((value, given_up.0), (id.clone(), false)),
            Err(error) => {
                assert_eq!((error.kind(), given_up.0), (ErrorKind::Store, true), "{error}");
                assert!(error.is_retryable());
            }
        }
    }
    let before = site.effects(&id);
    assert_eq!(before, if given_up.0 { 0 } else { 2 });
    // Whatever came of the statements that were on their way: the key is free, or will be when their lease is over.
    let patience = Instant::now() + SOON;
    loop {
        match retried(&w, &id, &gate).await {
            Ok(value) => break assert_eq!(value, id),
            Err(Error::InProgress { .. }) => assert!(Instant::now() < patience),
            Err(error) => panic!("{error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
    mail(&w, &id, &gate).await.expect("nothing is in its way");
    assert_eq!(site.effects(&id), 2, "each ran once");
}

/// (d) Silence while bodies run: they are told when nothing was confirmed for a lease, and whoever may be retried is
/// stopped.
pub(super) async fn c13_silence_during_heartbeats_is_told_to_the_body(site: &Site) {
    tokio::join!(silence_during_heartbeats(site, SILENCES[0]), silence_during_heartbeats(site, SILENCES[1]));
}

async fn silence_during_heartbeats(site: &Site, silence: Duration) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let other = site.worker().await;
    let id = format!("beat-{}", silence.as_millis());
    let gate = Gate::new();
    let asks = spawned({
        let (w, id) = (w.clone(), id.clone());
        async move { told(&w, &id).await }
    });
    let stopped = spawned({
        let (w, id, gate) = (w.clone(), id.clone(), gate.clone());
        async move { retried(&w, &id, &gate).await }
    });
    gate.arrived().await;
    // Both bodies have begun: a row that is there does not yet tell that its worker has heard of it.
    while site.effects(&id) < 2 {
        sleep(Duration::from_millis(2)).await;
    }
    proxy.blackhole();
    let error = timeout(SOON, stopped).await.expect("at the end of its lease").expect("no panic");
    assert_eq!(error.expect_err("its lease is gone").kind(), ErrorKind::ClaimLost);
    sleep(silence).await;
    proxy.forward();
    match timeout(SOON, asks).await.expect("in time").expect("no panic") {
        // It was told while the lease was gone; since nobody took the claim, its completion counts.
        Ok(lost) => {
            assert!(lost || silence < Duration::from_secs(5));
            let row = other.row_that_is(&format!("c13-told:{id}"), &Status::Completed).await;
            assert_eq!(row.attempt, 1);
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::CompletionUnknown, "{error}");
            assert!(silence > Duration::from_secs(5));
        }
    }
    // The one that was stopped is taken over by somebody who can reach the server.
    gate.open();
    let patience = Instant::now() + SOON;
    loop {
        match retried(&other, &id, &gate).await {
            Ok(value) => break assert_eq!(value, id),
            Err(Error::InProgress { .. }) => assert!(Instant::now() < patience),
            Err(error) => panic!("{error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(site.effects(&id), 3, "the heir is the only repeat");
}

/// (d) Silence during the completion: recorded when the server is back in time, and never a silent success when not.
pub(super) async fn c13_silence_during_a_completion_is_waited_out_or_told(site: &Site) {
    tokio::join!(
        silence_during_a_completion(site, SILENCES[0]),
        silence_during_a_completion(site, SILENCES[1])
    );
}

async fn silence_during_a_completion(site: &Site, silence: Duration) {
    let (proxy, w) = remote(site, |builder| builder.record_for(Duration::from_secs(4))).await;
    let other = site.worker().await;
    let id = if silence < Duration::from_secs(5) { "in-time" } else { "late" };
    let midway = Midway::of(&w, id).await;
    proxy.blackhole();
    midway.go_on();
    sleep(silence).await;
    if silence < Duration::from_secs(5) {
        assert!(!midway.is_finished());
        proxy.forward();
        midway.ends_well(&other, id).await;
    } else {
        assert!(midway.calls.iter().all(JoinHandle::is_finished), "nobody waits for TCP");
        for call in midway.calls {
            let error = call.await.expect("no panic").expect_err("nobody has confirmed it");
            let Error::CompletionUnknown { result, .. } = &error else { panic!("{error}") };
            assert_eq!(result.as_deref(), Some("\"late\""));
        }
        proxy.forward();
        // The statements that were on their way may arrive, or a person decides; nobody runs it by himself.
        let patience = Instant::now() + SOON;
        loop {
            match charge(&other, id, &Gate::new()).await {
                Ok(value) => break assert_eq!(value, id),
                Err(Error::NeedsReview { .. }) => break,
                Err(Error::InProgress { .. }) => assert!(Instant::now() < patience),
                Err(error) => panic!("{error}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(site.effects(id), 2, "one of each job");
}

/// (d) The token decides: a completion that was on its way while an heir took the key changes nothing.
pub(super) async fn c13_a_completion_that_arrives_after_an_heir_is_refused(site: &Site) {
    let (proxy, w) = remote(site, |builder| builder).await;
    let other = site.worker().await;
    let (gate, heir) = (Gate::new(), Gate::new());
    let late = spawned({
        let (w, gate) = (w.clone(), gate.clone());
        async move { charge(&w, "x", &gate).await }
    });
    gate.arrived().await;
    proxy.blackhole();
    gate.open();
    sleep(Duration::from_millis(300)).await;
    // A person looks into it and frees the key, and the next one has it.
    site.set("c13:x", "lease_until = 1").await;
    let freed = other.idem.resolve("c13:x", idem_runtime::Resolution::Retry).await.expect("an answer");
    assert!(matches!(freed, idem_runtime::Resolved::Changed { .. }), "{freed:?}");
    let next = spawned({
        let (w, gate) = (other.clone(), heir.clone());
        async move { charge(&w, "x", &gate).await }
    });
    heir.arrived().await;
    let taken = other.row("c13:x").await;
    proxy.forward();
    let error = timeout(SOON, late).await.expect("in time").expect("no panic").expect_err("it is the heir's");
    assert_eq!(error.kind(), ErrorKind::ClaimLost);
    let row = other.row("c13:x").await;
    assert_eq!((row.status, row.owner, row.fence), (Status::Processing, taken.owner, taken.fence));
    heir.open();
    assert_eq!(next.await.expect("no panic").expect("done"), "x");
    assert_eq!(site.effects("x"), 2);
}

/// Whatever else asks the server: looking, purging, resolving, forgetting, starting.
pub(super) async fn c13_nothing_waits_for_a_silent_server_for_long(site: &Site) {
    let (proxy, w) = remote(site, |builder| builder.store_timeout(Duration::from_secs(1))).await;
    let gate = Gate::new();
    gate.open();
    executed(charge(&w, "x", &gate)).await;
    proxy.blackhole();
    let url = site.database.url_through(proxy.address()).expect("a server");
    let idem = &w.idem;
    let all = async {
        tokio::join!(
            async { idem.lookup("c13:x").await.expect_err("silent") },
            async { idem.purge().await.expect_err("silent") },
            async {
                idem.resolve("c13:x", idem_runtime::Resolution::Failed).force().await.expect_err("silent")
            },
            async { idem.forget("c13:x").force().await.expect_err("silent") },
            async {
                let builder = idem_runtime::Idem::builder().url(url).store_timeout(Duration::from_secs(1));
                builder.connect().await.expect_err("silent")
            },
        )
    };
    let errors = timeout(SOON, all).await.expect("nobody waits for TCP");
    for error in [errors.0, errors.1, errors.2, errors.3, errors.4] {
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert!(error.is_retryable());
    }
    assert!(timeout(SOON, idem.shutdown(Duration::from_millis(100))).await.expect("in time").is_empty());
    proxy.cut();
    proxy.forward();
    assert_eq!(replayed(charge(&site.worker().await, "x", &gate)).await, "x");
}
