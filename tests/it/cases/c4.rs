//! A pooler in transaction mode: two server connections, and each transaction of a client on either.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use idem_runtime::{Error, ErrorKind, Outcome, Resolution, idempotent, record::Status, with_outcome};
use idem_tests::{Backend, Child, Proxy, child::Parent};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, Row, Transaction,
    postgres::PgConnectOptions,
};
use tokio::{task::JoinSet, time::sleep};

use super::{
    call::{Fault, executed, refused, replayed, took_over},
    gate::Gate,
    site::{self, Connected, Site, Worker},
};

/// Each with two connections.
const CLIENTS: u32 = 20;
const KEYS: u32 = 1_000;

#[idempotent(key = "c4:<id>", on_stale = "retry", on_busy = "wait", wait_for = "60s", idem = w.idem)]
async fn job(w: &Worker, id: u32) -> Result<u32, Error> {
    w.effect(&id.to_string());
    Ok(id)
}

#[idempotent(key = "c4-long:<id>", stale_after = "10s", on_stale = "retry", idem = w.idem)]
async fn lasting(w: &Worker, id: u32, gate: &Gate) -> Result<u32, Error> {
    w.effect(&format!("long {id}"));
    gate.pass().await;
    Ok(id)
}

/// With nothing kept prepared, as the documents ask for, and with the cache of statements as it comes.
fn urls(site: &Site) -> [String; 2] {
    let told = site.database.url().to_owned();
    let (untold, _) = told.split_once('?').expect("a URL that tells of the pooler");
    [untold.to_owned(), told]
}

/// An empty database for each of the two.
fn sites(site: &Site) -> [(Site, String); 2] {
    [0, 1].map(|n| {
        let site = Site::at(site.database.another());
        let url = urls(&site)[n].clone();
        (site, url)
    })
}

async fn client(site: &Site, url: &str) -> Worker {
    site.worker_by(|builder| builder.url(url)).await
}

/// What the connections of ours have sent last, as the server tells.
async fn last_sent(site: &Site) -> BTreeSet<String> {
    let mut hand = connect(site.database.direct_url()).await;
    let sent = "SELECT query FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'idem' AND state = 'idle'";
    let rows = sqlx::raw_sql(sql(sent)).fetch_all(&mut hand).await.expect("a list of statements");
    rows.iter().map(|row| row.get(0)).collect()
}

/// A connection that is not ours.
async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().expect("a URL of a server");
    // Without what a pooler refuses unless it was told to ignore it.
    options.extra_float_digits(None).application_name("another").connect().await.expect("a connection")
}

fn sql(text: impl Into<String>) -> AssertSqlSafe<String> {
    AssertSqlSafe(text.into())
}

pub(super) async fn c4_a_pooler_is_told_from_a_server(site: &Site) {
    let pooled = site.database.is_pooled();
    let urls = if pooled { urls(site).to_vec() } else { vec![site.database.url().to_owned()] };
    for (id, url) in (0..).zip(&urls) {
        let w = client(site, url).await;
        assert_eq!(executed(job(&w, id)).await, id);
        let sent = last_sent(site).await;
        assert!(!sent.is_empty());
        assert_eq!(sent.iter().all(|sent| sent == "COMMIT"), pooled, "{url}: {sent:?}");
    }
}

/// The address that we know is moved to a pooler while we run, on which somebody has prepared statements already.
pub(super) async fn c4_a_pooler_that_comes_later_is_found(site: &Site) {
    let direct = Site::on(Backend::Postgres);
    let proxy = Proxy::to(direct.database.address().expect("a server"));
    let w = client(&direct, &direct.database.url_through(proxy.address()).expect("a server")).await;
    assert_eq!(executed(job(&w, 0)).await, 0);
    assert!(!last_sent(&direct).await.contains("COMMIT"));

    let pooler = site.database.address().expect("a pooler");
    let through_pooler = direct.database.url_through(pooler).expect("a server");
    let mut others = [connect(&through_pooler).await, connect(&through_pooler).await];
    let prepare: Vec<_> = (1..=40).map(|n| format!("PREPARE sqlx_s_{n} AS SELECT {n}")).collect();
    let prepare = format!("BEGIN; {}", prepare.join("; "));
    for other in &mut others {
        // Both are in a transaction at once, so that each has a server process of its own.
        sqlx::raw_sql(sql(&*prepare)).execute(other).await.expect("prepared");
    }
    for other in &mut others {
        sqlx::raw_sql("COMMIT").execute(other).await.expect("the end");
    }
    proxy.redirect(pooler);
    proxy.cut();
    for id in 1..=20 {
        assert_eq!(executed(job(&w, id)).await, id);
        assert_eq!(replayed(job(&w, id)).await, id);
    }
    assert_eq!(last_sent(&direct).await.into_iter().collect::<Vec<_>>(), ["COMMIT"]);
}

pub(super) async fn c4_five_processes_create_the_table_at_once(site: &Site) {
    for (site, url) in &sites(site) {
        let mut children: Vec<_> = (0..5).map(|_| starting(site, url)).collect();
        for child in &mut children {
            child.say("go");
        }
        for child in &mut children {
            child.expect("done");
            assert!(child.wait().success(), "{}", child.transcript());
        }
        assert_eq!(site.effects("7"), 1);
    }
}

fn starting(site: &Site, url: &str) -> Child {
    let mut child = Child::spawn(site.child("cases::c4::another_client").env(site::URL, url));
    child.expect("ready");
    child
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn another_client() {
    let Some(parent) = Parent::attach() else { return };
    parent.say("ready");
    assert_eq!(parent.hear(), "go");
    let w = Worker::of_parent().await;
    let (result, outcome) = with_outcome(job(&w, 7)).await;
    assert_eq!(result.expect("done"), 7);
    assert!(matches!(outcome, Some(Outcome::Executed | Outcome::Replayed)), "{outcome:?}");
    parent.say("done");
}

/// Each key twice, by two clients; meanwhile long jobs live on their heartbeats, and rows are purged.
pub(super) async fn c4_forty_clients_make_a_thousand_claims(site: &Site) {
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        clients.push(client(site, &urls(site)[usize::from(n % 2 == 0)]).await);
    }
    site.execute(
        "INSERT INTO idempotency_keys (key, status, expires_at)
         SELECT 'old:' || n, 'completed', 1 FROM generate_series(1, 2000) AS n",
    )
    .await;
    let gate = Gate::new();
    let mut long = JoinSet::new();
    for (id, w) in (0..).zip(&clients) {
        let (w, gate) = (w.clone(), gate.clone());
        long.spawn(async move { executed(lasting(&w, id, &gate)).await });
    }
    for _ in &clients {
        gate.arrived().await;
    }
    let mut calls = JoinSet::new();
    for delivery in 0..2 {
        for id in 0..KEYS {
            let w = clients[((id + 7 * delivery) % CLIENTS) as usize].clone();
            calls.spawn(async move { with_outcome(job(&w, id)).await.1 });
        }
    }
    let purge = tokio::spawn({
        let w = clients[0].clone();
        async move { w.idem.purge().await }
    });
    let outcomes = calls.join_all().await;
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == Some(wanted)).count();
    assert_eq!((count(Outcome::Executed), count(Outcome::Replayed)), (1_000, 1_000));
    assert!((0..KEYS).all(|id| site.effects(&id.to_string()) == 1));
    assert_eq!(purge.await.expect("no panic").expect("a purge"), 2_000);

    let w = &clients[0];
    let mut leases = Vec::new();
    for id in 0..CLIENTS {
        let key = format!("c4-long:{id}");
        let until = w.row(&key).await.lease_until;
        leases.push((key, until));
    }
    for (key, until) in leases {
        w.row_such_that(&key, "renewed", |row| row.lease_until > until).await;
    }
    for _ in &clients {
        gate.open();
    }
    assert_eq!(long.join_all().await.len(), clients.len());
    assert!((0..CLIENTS).all(|id| site.effects(&format!("long {id}")) == 1));
}

/// A claim of a child that has come as far as the server, where a lock of the whole table holds it.
async fn claiming(site: &Site, url: &str) -> (Connected, Child) {
    site.worker().await;
    let mut child = Child::spawn(site.child("cases::c4::claims").env(site::URL, url));
    child.expect("ready");
    let mut hand = site.connection().await;
    hand.execute("BEGIN; LOCK TABLE idempotency_keys IN EXCLUSIVE MODE").await;
    child.say("go");
    waiting(site, "ours is waiting for the table", true).await;
    (hand, child)
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn claims() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    parent.say("ready");
    assert_eq!(parent.hear(), "go");
    loop {
        match job(&w, 1).await {
            Ok(value) => break assert_eq!(value, 1),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    parent.say("done");
}

/// Waits until a server process of ours is waiting for a lock, or until none has a transaction open any more.
async fn waiting(site: &Site, what: &str, wanted: bool) {
    let condition = if wanted { "wait_event_type = 'Lock'" } else { "xact_start IS NOT NULL" };
    let count = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'idem' AND {condition}"
    );
    let patience = Instant::now() + Duration::from_secs(30);
    let mut hand = site.connection().await;
    while (hand.number(&count).await > 0) != wanted {
        assert!(Instant::now() < patience, "not in time: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn c4_a_claim_whose_client_is_killed_locks_nothing(site: &Site) {
    for (site, url) in &sites(site) {
        let (mut hand, mut child) = claiming(site, url).await;
        child.kill();
        hand.execute("ROLLBACK").await;
        waiting(site, "the dead one's transaction is over", false).await;
        let w = client(site, url).await;
        assert_eq!(executed(job(&w, 1)).await, 1);
        assert_eq!(site.effects("1"), 1);

        let mut child = Child::spawn(site.child("cases::c4::holds").env(site::URL, url));
        child.expect("entered");
        child.kill();
        waiting(site, "nothing is left of its connection", false).await;
        let gate = Gate::new();
        refused(ErrorKind::InProgress, lasting(&w, 1, &gate)).await;
        site.end_lease(&w, "c4-long:1").await;
        gate.open();
        assert_eq!(took_over(lasting(&w, 1, &gate)).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn holds() {
    let Some(parent) = Parent::attach() else { return };
    let (w, gate) = (Worker::of_parent().await, Gate::new());
    gate.stops(&mut Box::pin(lasting(&w, 1, &gate))).await;
    parent.say("entered");
    let _ = parent.hear();
}

/// It has sent its claim and does not say that it is meant. Its server process waits for that no longer than for 5
/// seconds, and once it is back, it begins anew.
pub(super) async fn c4_a_claim_whose_client_freezes_is_given_up(site: &Site) {
    for (site, url) in &sites(site) {
        let (mut hand, mut child) = claiming(site, url).await;
        child.stop();
        hand.execute("ROLLBACK").await;
        waiting(site, "the frozen one's transaction is over", false).await;
        let w = client(site, url).await;
        assert_eq!(executed(job(&w, 1)).await, 1);
        child.resume();
        child.expect("done");
        assert!(child.wait().success(), "{}", child.transcript());
        assert_eq!(site.effects("1"), 1);
    }
}

/// It has the lock under which the table is made, and waits for somebody who makes a table of that name, too.
pub(super) async fn c4_a_table_whose_maker_is_killed_is_made_by_the_next(site: &Site) {
    for (site, url) in &sites(site) {
        let mut child = starting(site, url);
        let mut hand = site.connection().await;
        hand.execute("BEGIN; CREATE TABLE idempotency_keys (key text)").await;
        child.say("go");
        waiting(site, "ours is waiting for the other table", true).await;
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(site.number(held).await, 1);
        child.kill();
        hand.execute("ROLLBACK").await;
        let w = client(site, url).await;
        assert_eq!(executed(job(&w, 1)).await, 1);
        assert_eq!(site.number(held).await, 0);
    }
}

/// What a session of the server can remember: settings, prepared statements, cursors, locks, channels, tables.
const REMEMBERED: &str = "
    SELECT concat_ws('; ',
        (SELECT string_agg(name || '=' || setting, ', ' ORDER BY name) FROM pg_settings WHERE source = 'session'),
        (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
        (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_class WHERE relpersistence = 't'))";

/// What both server processes remember.
async fn remembered(url: &str) -> Vec<String> {
    let mut both = [connect(url).await, connect(url).await];
    let mut remembered = Vec::new();
    for one in &mut both {
        sqlx::raw_sql("BEGIN").execute(&mut *one).await.expect("a transaction");
        let row = sqlx::raw_sql(REMEMBERED).fetch_one(one).await.expect("a row");
        remembered.push(row.get(0));
    }
    remembered
}

pub(super) async fn c4_no_session_state_is_left_behind(site: &Site) {
    for (site, url) in &sites(site) {
        // Whatever a pooler itself sets for each of its clients.
        let before = remembered(url).await;
        let clients = [client(site, url).await, client(site, url).await];
        let (gate, mut calls) = (Gate::new(), JoinSet::new());
        for id in 0..60 {
            let (w, gate) = (clients[id as usize % 2].clone(), gate.clone());
            calls.spawn(async move { lasting(&w, id, &gate).await });
        }
        for _ in 0..60 {
            gate.arrived().await;
        }
        let until = clients[0].row("c4-long:0").await.lease_until;
        clients[0].row_such_that("c4-long:0", "renewed", |row| row.lease_until > until).await;
        for _ in 0..60 {
            gate.open();
        }
        assert!(calls.join_all().await.iter().all(Result::is_ok));
        let [w, _] = &clients;
        w.idem.resolve("c4-long:0", Resolution::Retry).force().await.expect("a resolution");
        gate.open();
        assert_eq!(executed(lasting(w, 0, &gate)).await, 0);
        w.idem.forget("c4-long:1").await.expect("forgotten");
        w.idem.purge().await.expect("a purge");
        assert_eq!(w.row("c4-long:0").await.status, Status::Completed);
        assert_eq!(remembered(url).await, before);
    }
}

/// As an application must write it that has a pooler: it keeps nothing prepared.
#[idempotent(key = "c4-tx:<id>", mode = "transactional", idem = w.idem)]
async fn books(w: &Worker, tx: &mut Transaction<'_, Postgres>, id: u32) -> Result<u32, Fault> {
    let row = sqlx::query("INSERT INTO effects VALUES ($1)").bind(i64::from(id)).persistent(false);
    row.execute(&mut **tx).await?;
    Ok(id)
}

pub(super) async fn c4_jobs_in_a_callers_transaction_leave_nothing_prepared(site: &Site) {
    site.execute("CREATE TABLE effects (id bigint)").await;
    for (round, url) in (0..).zip(urls(site)) {
        let before = remembered(&url).await;
        let w = client(site, &url).await;
        let mut callers = JoinSet::new();
        for caller in 0..4 {
            let (w, mut connection) = (w.clone(), connect(&url).await);
            callers.spawn(async move {
                for step in 0..20 {
                    let id = 100 * round + (step + 5 * caller) % 20;
                    let mut tx = connection.begin().await.expect("a transaction");
                    assert_eq!(books(&w, &mut tx, id).await.expect("done"), id);
                    tx.commit().await.expect("a commit");
                }
            });
        }
        callers.join_all().await;
        assert_eq!(remembered(&url).await, before);
    }
    assert_eq!(site.number("SELECT count(*) FROM effects").await, 40);
    assert_eq!(site.number("SELECT count(DISTINCT id) FROM effects").await, 40);
}

/// Words that leave something in a session.
const OF_A_SESSION: [&str; 7] =
    ["LISTEN", "PREPARE", "DECLARE", "TEMP", "TEMPORARY", "DISCARD", "pg_advisory_lock"];

pub(super) async fn c4_no_statement_needs_a_session(_: &Site) {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../idem-runtime");
    let mut files = vec![runtime.join("src/store/postgres.rs")];
    for folder in ["src/store/postgres", "migrations/postgres"] {
        let entries = fs::read_dir(runtime.join(folder)).expect("a folder");
        files.extend(entries.map(|entry| entry.expect("a file").path()));
    }
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && !"_{}".contains(c)).collect();
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        for word in words.windows(3) {
            let [before, word, after] = [word[0], word[1], word[2]];
            assert!(!OF_A_SESSION.contains(&word), "{}: {word}", file.display());
            let updates = ["{table}", "{schema}", "held"].contains(&before);
            assert!(word != "SET" || updates || after == "LOCAL", "{}: SET {after}", file.display());
        }
        for (_, settings) in
            text.match_indices("set_config(").map(|(at, word)| text.split_at(at + word.len()))
        {
            let arguments = settings.split(')').next().expect("its end");
            assert!(arguments.ends_with(", true"), "{}: set_config({arguments})", file.display());
        }
    }
}
