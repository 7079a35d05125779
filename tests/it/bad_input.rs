//! Bad input: each a typed error that says what to do; nothing runs that should not, and nothing is lost.

mod process;

use std::time::{Duration, Instant};

use idem_runtime::{
    Builder, Error, ErrorKind, Idem, KeyPart, Resolution, Resolved, idempotent, record::Status,
};
use idem_tests::{Backend, Capture, Proxy};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};
use tracing::Level;

use crate::cases::{
    call::{Fault, executed, refused, replayed},
    gate::Gate,
    site::{Site, Worker, at_rest},
};

macro_rules! on {
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

on! {
    memory: Memory {
        texts_that_a_database_would_refuse_are_taken
        an_empty_value_is_no_key
        a_result_that_no_longer_fits_is_told
        a_long_key_runs_under_its_digest
        a_result_over_the_limit_is_completed_with_one_warning
    }
    sqlite: Sqlite {
        texts_that_a_database_would_refuse_are_taken
        an_empty_value_is_no_key
        a_result_that_no_longer_fits_is_told
        a_long_key_runs_under_its_digest
        a_result_over_the_limit_is_completed_with_one_warning
        a_read_only_database_is_refused
        a_missing_table_is_told_with_the_way_to_get_it
        a_folder_that_is_not_there_is_told
        a_table_that_is_away_during_the_body_is_waited_for
        a_table_that_stays_away_makes_the_completion_unknown
        a_store_that_is_away_runs_nothing
        a_queue_that_is_full_runs_nothing
    }
    postgres: Postgres {
        texts_that_a_database_would_refuse_are_taken
        an_empty_value_is_no_key
        a_result_that_no_longer_fits_is_told
        a_long_key_runs_under_its_digest
        a_result_over_the_limit_is_completed_with_one_warning
        a_read_only_server_is_refused
        a_missing_table_is_told_with_the_way_to_get_it
        a_missing_database_is_told
        a_server_that_does_not_listen_is_told
        a_server_that_does_not_answer_is_told_in_time
        a_table_that_is_away_during_the_body_is_waited_for
        a_table_that_stays_away_makes_the_completion_unknown
        a_server_that_is_away_during_the_body_is_waited_for
        a_server_that_stays_away_makes_the_completion_unknown
        a_completion_whose_reply_is_lost_is_recognised
        a_server_that_turns_read_only_is_waited_for
        a_server_that_is_away_longer_than_the_lease_stops_a_body_that_may_be_retried
        a_store_that_is_away_runs_nothing
        a_queue_that_is_full_runs_nothing
    }
}

/// The refusal of a set-up.
async fn unfit(builder: Builder) -> Error {
    builder.connect().await.expect_err("a set-up that is refused")
}

/// A refusal for good, with these words in it.
async fn is_refused(builder: Builder, words: &[&str]) {
    let error = unfit(builder).await;
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(!error.is_retryable(), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} in: {error}");
    }
}

#[tokio::test]
async fn a_malformed_url_is_refused_with_what_is_right() {
    let right = ["sqlite://", "postgres://", "memory:"];
    for url in [
        "",
        "idem.db",
        "sqlite",
        "postgres",
        "memory",
        "memory:x",
        "redis://host",
        "http://host/x",
        "://",
        " ",
    ] {
        is_refused(Idem::builder().url(url), &right).await;
    }
    for url in [
        "postgres://user:secret@host:port/database",
        "postgres://user:secret@host:99999/database",
        "redis://user:secret@host/database",
        "postgres://user:secret@[::1/database",
        "postgres://user:top/secret@host/database",
        "postgres://user:top@secret@host:port/database",
        "redis://host/database?user=user&password=secret",
        "postgres://host:port/database?password=secret",
    ] {
        let error = unfit(Idem::builder().url(url)).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "no password in {error:?}");
    }
    for url in ["sqlite:", "sqlite://", "sqlite://?mode=rw"] {
        is_refused(Idem::builder().url(url), &["sqlite://idem.db", "sqlite::memory:"]).await;
    }
    for url in ["sqlite://idem.db?mode=sometimes", "sqlite://idem.db?moode=ro"] {
        is_refused(Idem::builder().url(url), &["mo"]).await;
    }
}

#[tokio::test]
async fn names_that_are_no_names_are_refused() {
    for table in ["", "a b", "keys;--", "a\"b", "ключи\0"] {
        is_refused(Idem::builder().url("sqlite::memory:").table(table), &[]).await;
    }
    for namespace in ["", "a b", "a%", "a/b", "a\nb"] {
        is_refused(Idem::builder().url("memory:").namespace(namespace), &["namespace"]).await;
    }
}

async fn a_read_only_database_is_refused(site: &Site) {
    let url = format!("{}?mode=ro", site.database.url());
    is_refused(Idem::builder().url(&url), &["read-only", "leave out `mode=ro`"]).await;
    let w = site.worker().await;
    executed(echo(&w, "x")).await;
    is_refused(Idem::builder().url(&url), &["read-only", "leave out `mode=ro`"]).await;
    assert_eq!(replayed(echo(&w, "x")).await, "x");
}

async fn a_read_only_server_is_refused(site: &Site) {
    site.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
         current_database()); END $$",
    )
    .await;
    is_refused(Idem::builder().url(site.database.url()), &["read-only", "primary"]).await;
}

async fn a_missing_table_is_told_with_the_way_to_get_it(site: &Site) {
    let absent = || Idem::builder().url(site.database.url()).migrate(false);
    if site.backend() == Backend::Sqlite {
        drop(site.connection().await);
    }
    is_refused(absent(), &["idempotency_keys", "missing", "Idem::ddl()"]).await;

    let ddl = Idem::connect("sqlite::memory:").await.expect("a database").ddl();
    assert!(ddl.contains("CREATE TABLE"), "{ddl}");
    let elsewhere = Site::on(site.backend());
    let ddl = elsewhere.worker().await.idem.ddl();
    site.execute(&ddl).await;
    let w = site.worker_of(absent().connect().await.expect("a table that was made by hand"));
    assert_eq!(executed(echo(&w, "x")).await, "x");
    assert_eq!(replayed(echo(&w, "x")).await, "x");
    is_refused(absent().table("other_keys"), &["other_keys"]).await;
}

async fn a_folder_that_is_not_there_is_told(site: &Site) {
    let file = site.database.file().expect("a file");
    let inside = file.with_file_name("missing").join("idem.db");
    is_refused(Idem::builder().url(format!("sqlite://{}", inside.display())), &["folder"]).await;
    let missing = format!("sqlite://{}?mode=rw", file.display());
    is_refused(Idem::builder().url(missing), &["mode=rw"]).await;
    std::fs::write(&file, "this is no database, however long it may be ".repeat(100)).expect("a file");
    is_refused(Idem::builder().url(site.database.url()), &["not a SQLite database"]).await;
}

async fn a_missing_database_is_told(site: &Site) {
    let url = format!("{}_missing", site.database.url());
    is_refused(Idem::builder().url(url), &["_missing"]).await;
}

const SOON: Duration = Duration::from_secs(20);

/// A refusal that another try may fare better than, in time.
async fn is_unreachable(builder: Builder, address: &str) {
    let began = Instant::now();
    let error = unfit(builder.store_timeout(Duration::from_millis(500))).await;
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains(address), "who does not answer: {error}");
    assert!(began.elapsed() < SOON);
}

async fn a_server_that_does_not_listen_is_told(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let address = proxy.address();
    let url = site.database.url_through(address).expect("a server");
    proxy.refuse();
    is_unreachable(Idem::builder().url(&url), &address.to_string()).await;
    drop(proxy);
    is_unreachable(Idem::builder().url(&url), &address.to_string()).await;
}

async fn a_server_that_does_not_answer_is_told_in_time(site: &Site) {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let address = proxy.address();
    let url = site.database.url_through(address).expect("a server");
    proxy.blackhole();
    is_unreachable(Idem::builder().url(&url), &address.to_string()).await;
    proxy.cut();
}

#[idempotent(key = "bad-echo:<text>", idem = w.idem)]
async fn echo(w: &Worker, text: &str) -> Result<String, Error> {
    w.effect("echo");
    Ok(text.to_owned())
}

#[derive(KeyPart)]
struct User {
    tenant: String,
    name: String,
}

#[idempotent(key = "bad-user:<user>:<step>", idem = w.idem)]
fn greet(w: &Worker, user: &User, step: &str) -> Result<String, Error> {
    w.effect("greet");
    Ok(format!("{}/{}/{step}", user.tenant, user.name))
}

async fn an_empty_value_is_no_key(site: &Site) {
    let w = site.worker().await;
    let error = refused(ErrorKind::InvalidKey, echo(&w, "")).await;
    let text = error.to_string();
    assert!(text.contains("bad-echo:<>") && text.contains("empty"), "{text}");
    assert!(!error.is_retryable());
    for (tenant, name, step) in [("", "b", "c"), ("a", "", "c"), ("a", "b", ""), ("", "", "")] {
        let user = User { tenant: tenant.to_owned(), name: name.to_owned() };
        let error = greet(&w, &user, step).expect_err("an empty value");
        assert_eq!(error.kind(), ErrorKind::InvalidKey);
        assert!(error.to_string().contains("bad-user:<>:<>"), "{error}");
    }
    assert_eq!(site.ledger.total(), 0);
    assert_eq!(executed(echo(&w, " ")).await, " ", "a blank is a value");
    assert_eq!(w.row("bad-echo:%20").await.status, Status::Completed);
}

#[idempotent(key = "bad-text:<id>", on_error = "record", idem = w.idem)]
async fn complains(w: &Worker, id: u32, text: String) -> Result<u32, Fault> {
    w.effect("complains");
    if text.is_empty() { Ok(id) } else { Err(Fault::Own(text)) }
}

#[idempotent(key = "bad-doubt:<id>", idem = w.idem)]
async fn doubts(w: &Worker, id: u32, text: String) -> Result<u32, Fault> {
    w.effect("doubts");
    if text.is_empty() { Ok(id) } else { Err(Fault::Own(text)) }
}

/// A zero byte, which some databases take for the end of a text, and a megabyte.
async fn texts_that_a_database_would_refuse_are_taken(site: &Site) {
    let megabyte = "é".repeat(500_000);
    for (n, text) in ["a\0b", &megabyte].into_iter().enumerate() {
        let w = site.worker_by(|builder| builder.worker(text).namespace(format!("n{n}"))).await;
        assert_eq!(complains(&w, 1, text.to_owned()).await.expect_err("its own").to_string(), text);
        let error = refused(ErrorKind::PreviouslyFailed, complains(&w, 1, String::new())).await.to_string();
        assert!(error.contains(if n == 0 { "a\u{fffd}b" } else { "ééé" }) && error.len() < 10_000);

        doubts(&w, 1, text.to_owned()).await.expect_err("its own");
        refused(ErrorKind::NeedsReview, doubts(&w, 1, String::new())).await;
        let resolving = w.idem.resolve("bad-doubt:1", Resolution::Failed).actor(text).note(text);
        let resolved = resolving.await.expect("a look");
        assert!(matches!(resolved, Resolved::Changed { .. }), "{resolved:?}");
        refused(ErrorKind::PreviouslyFailed, doubts(&w, 1, String::new())).await;
        let json = serde_json::json!({ "text": text });
        let resolving =
            w.idem.resolve("bad-doubt:1", Resolution::Completed(Some(json))).force().note("it did");
        resolving.await.expect("a look");
        assert_eq!(w.row("bad-doubt:1").await.status, Status::Completed);
        w.idem.forget("bad-doubt:1").force().actor(text).note(text).await.expect("a look");
        assert_eq!(w.find("bad-doubt:1").await, None);
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Old {
    cents: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct New {
    cents: u8,
    currency: String,
}

#[idempotent(key = "bad-type:<id>", idem = w.idem)]
async fn old(w: &Worker, id: u32) -> Result<Old, Error> {
    w.effect("type");
    Ok(Old { cents: i64::from(id) })
}

#[idempotent(key = "bad-type:<id>", allow_overlap(old), idem = w.idem)]
async fn new(w: &Worker, id: u32) -> Result<New, Error> {
    w.effect("type");
    Ok(New { cents: 1, currency: id.to_string() })
}

async fn a_result_that_no_longer_fits_is_told(site: &Site) {
    let w = site.worker().await;
    executed(old(&w, 7)).await;
    let row = at_rest(w.row("bad-type:7").await);
    let error = refused(ErrorKind::ReplayUnreadable, new(&w, 7)).await.to_string();
    for word in ["bad-type:7", "bad_input::New", "currency"] {
        assert!(error.contains(word), "{word} in: {error}");
    }
    assert_eq!(at_rest(w.row("bad-type:7").await), row);
    assert_eq!(replayed(old(&w, 7)).await.cents, 7);
    assert_eq!(site.ledger.total(), 1);
}

async fn a_long_key_runs_under_its_digest(site: &Site) {
    let w = site.worker().await;
    let long = "x".repeat(300);
    assert_eq!(executed(echo(&w, &long)).await, long);
    assert_eq!(replayed(echo(&w, &long)).await, long);
    let key = w.row(&format!("bad-echo:{long}")).await.key;
    assert!(key.starts_with("bad-echo:xxx") && key.contains("%#") && key.len() <= 255, "{key}");
}

#[idempotent(key = "bad-size:<bytes>", idem = w.idem)]
async fn sized(w: &Worker, bytes: usize) -> Result<String, Error> {
    w.effect("sized");
    Ok("x".repeat(bytes))
}

async fn a_result_over_the_limit_is_completed_with_one_warning(site: &Site) {
    // In JSON a text has two bytes more.
    for (limit, w) in [
        (64 * 1024, site.worker().await),
        (100, site.worker_by(|builder| builder.result_limit(100).namespace("small")).await),
    ] {
        let at = limit - 2;
        assert_eq!(executed(sized(&w, at)).await.len(), at);
        assert_eq!(replayed(sized(&w, at)).await.len(), at, "at the limit");

        let over = at + 1;
        let log = Capture::everywhere();
        let warnings = || log.find(Level::WARN, &format!("it takes {} bytes as JSON", limit + 1)).len();
        assert_eq!(executed(sized(&w, over)).await.len(), over, "the caller has it once");
        // Other back ends play the same case meanwhile.
        assert!(warnings() >= 1);
        let row = w.row(&format!("bad-size:{over}")).await;
        assert_eq!((row.status, row.result), (Status::Completed, None));
        drop(log);
        for _ in 0..2 {
            let error = refused(ErrorKind::AlreadyCompleted, sized(&w, over)).await;
            assert!(!error.is_retryable());
        }
    }
    assert_eq!(site.effects("sized"), 4);
}

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

async fn a_table_that_is_away_during_the_body_is_waited_for(site: &Site) {
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

async fn a_table_that_stays_away_makes_the_completion_unknown(site: &Site) {
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

async fn a_server_that_is_away_during_the_body_is_waited_for(site: &Site) {
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

async fn a_server_that_stays_away_makes_the_completion_unknown(site: &Site) {
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

async fn a_completion_whose_reply_is_lost_is_recognised(site: &Site) {
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

async fn a_server_that_turns_read_only_is_waited_for(site: &Site) {
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
async fn a_server_that_is_away_longer_than_the_lease_stops_a_body_that_may_be_retried(site: &Site) {
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

async fn a_store_that_is_away_runs_nothing(site: &Site) {
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

async fn a_queue_that_is_full_runs_nothing(site: &Site) {
    let w = site.worker_by(|builder| builder.queue_limit(0)).await;
    let error = refused(ErrorKind::Store, echo(&w, "x")).await;
    assert!(error.is_retryable());
    assert!(error.to_string().contains("too many"), "{error}");
    assert_eq!(site.ledger.total(), 0);
}
