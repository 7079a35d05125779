//! Bad input: each a typed error that says what to do; nothing runs that should not, and nothing is lost.

mod away;
mod process;

use std::time::{Duration, Instant};

use idem_runtime::{
    Builder, Error, ErrorKind, Idem, KeyPart, Resolution, Resolved, idempotent, record::Status,
};
use idem_tests::{Backend, Capture, Proxy};
use serde::{Deserialize, Serialize};
use tracing::Level;

use crate::cases::{
    call::{Fault, executed, refused, replayed},
    site::{Site, Worker, at_rest},
};

use self::away::{
    a_completion_whose_reply_is_lost_is_recognised, a_server_that_is_away_during_the_body_is_waited_for,
    a_server_that_is_away_longer_than_the_lease_stops_a_body_that_may_be_retried,
    a_server_that_stays_away_makes_the_completion_unknown, a_server_that_turns_read_only_is_waited_for,
    a_store_that_is_away_runs_nothing, a_table_that_is_away_during_the_body_is_waited_for,
    a_table_that_stays_away_makes_the_completion_unknown,
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
    mysql: Mysql {
        texts_that_a_database_would_refuse_are_taken
        an_empty_value_is_no_key
        a_result_that_no_longer_fits_is_told
        a_long_key_runs_under_its_digest
        a_result_over_the_limit_is_completed_with_one_warning
        a_missing_table_is_told_with_the_way_to_get_it
        a_missing_database_is_told
        a_table_of_an_engine_without_row_locks_is_refused
        a_key_that_is_not_the_primary_one_is_refused
        an_account_that_may_not_create_is_given_the_statements
        a_server_that_does_not_listen_is_told
        a_server_that_does_not_answer_is_told_in_time
        a_table_that_is_away_during_the_body_is_waited_for
        a_table_that_stays_away_makes_the_completion_unknown
        a_server_that_is_away_during_the_body_is_waited_for
        a_server_that_stays_away_makes_the_completion_unknown
        a_completion_whose_reply_is_lost_is_recognised
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
    let right = ["sqlite://", "postgres://", "mysql://", "memory:"];
    for url in [
        "",
        "idem.db",
        "sqlite",
        "postgres",
        "mysql",
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
        "mysql://user:secret@host:port/database",
        "mariadb://user:top/secret@host/database",
        "mysql://user:secret@host",
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

async fn a_table_of_an_engine_without_row_locks_is_refused(site: &Site) {
    site.worker().await;
    site.execute("ALTER TABLE idempotency_keys ENGINE = MyISAM").await;
    is_refused(Idem::builder().url(site.database.url()), &["MyISAM", "ENGINE = InnoDB"]).await;
    site.execute("ALTER TABLE idempotency_keys ENGINE = InnoDB").await;
    executed(echo(&site.worker().await, "x")).await;
}

async fn a_key_that_is_not_the_primary_one_is_refused(site: &Site) {
    site.worker().await;
    let other =
        "ALTER TABLE idempotency_keys DROP PRIMARY KEY, ADD COLUMN id bigint AUTO_INCREMENT PRIMARY KEY,
        ADD UNIQUE INDEX by_key (\"key\")";
    site.execute(other).await;
    is_refused(Idem::builder().url(site.database.url()), &["primary key on `key`"]).await;
}

/// What is left to it is enough as soon as somebody else has made the tables.
async fn an_account_that_may_not_create_is_given_the_statements(site: &Site) {
    let mut url = url::Url::parse(site.database.url()).expect("a URL");
    let database = url.path().trim_start_matches('/').to_owned();
    let account = format!("'{}'@'%'", &database[database.len() - 12..]);
    site.execute(&format!("CREATE USER {account}")).await;
    site.execute(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON \"{database}\".* TO {account}")).await;
    url.set_username(&database[database.len() - 12..]).expect("a URL with a host");
    url.set_password(None).expect("a URL with a host");
    is_refused(Idem::builder().url(url.as_str()), &["CREATE TABLE IF NOT EXISTS", "grant it SELECT"]).await;
    drop(site.worker().await);
    let w = site.worker_by(|builder| builder.url(url.as_str())).await;
    executed(echo(&w, "x")).await;
    site.execute(&format!("DROP USER {account}")).await;
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

async fn a_queue_that_is_full_runs_nothing(site: &Site) {
    let w = site.worker_by(|builder| builder.queue_limit(0)).await;
    let error = refused(ErrorKind::Store, echo(&w, "x")).await;
    assert!(error.is_retryable());
    assert!(error.to_string().contains("too many"), "{error}");
    assert_eq!(site.ledger.total(), 0);
}
