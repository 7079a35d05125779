//! The table's name and place.

use idem_runtime::{Builder, Idem, Resolution, Resolved, idempotent};
use idem_tests::{Backend, Child, child::Parent};
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};

use crate::cases::{
    call::{Fault, executed, replayed},
    gate::Gate,
    life::{AUDITED, ROWS, held, live, plain, short_lived},
    site::{Site, Worker},
};

/// A table as SQL writes its name.
fn sql_name(site: &Site, table: &str) -> String {
    match site.backend() {
        Backend::Memory | Backend::Sqlite | Backend::Postgres => format!("\"{table}\""),
        Backend::Mysql => format!("`{table}`"),
    }
}

pub(in crate::cases) async fn c14_a_table_name_may_need_quotes(site: &Site) {
    let names = ["order", "select", "My-Keys", "Schlüssel", "a$b", "1st", "UPPER"];
    for (n, name) in names.into_iter().enumerate() {
        let w = site.worker_by(|builder| short_lived(builder.table(name))).await;
        live(&w, &format!("q{n}")).await;
        let count = format!("SELECT count(*) FROM {}", sql_name(site, name));
        assert_eq!(site.number(&count).await, ROWS, "{name}");
        let audited = format!("SELECT count(*) FROM {}", sql_name(site, &format!("{name}_audit")));
        assert_eq!(site.number(&audited).await, AUDITED, "{name}");
        // The second start finds what the first has made.
        let again = site.worker_by(|builder| builder.table(name).migrate(false)).await;
        replayed(plain(&again, &format!("q{n}-0"))).await;
    }
    for name in ["", "a b", "a\"b", "a;b", "x.y.z", "a`b", "a'b"] {
        let refused = Idem::builder().url(site.database.url()).table(name).connect().await;
        assert!(refused.is_err_and(|error| error.to_string().contains("cannot name a table")), "{name}");
    }
}

/// A table of ours in which every key is completed with somebody else's result.
async fn decoy(site: &Site, schema: &str) {
    let ddl = Idem::builder().url(site.database.url()).schema(schema).ddl().expect("the DDL");
    site.execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}; {ddl}")).await;
    site.execute(&format!(
        "INSERT INTO {schema}.idempotency_keys (key, status, result, expires_at)
         SELECT prefix || id || tail, 'completed', '\"a decoy\"', 1
         FROM unnest(ARRAY['life:', 'life-plain:', 'life-mail:', 'life-unsure:', 'life-again:', 'life-released:']) AS prefix,
             unnest(ARRAY['a', 'b', 'c']) AS id, unnest(ARRAY['', '-0', '-1', '-39']) AS tail"
    ))
    .await;
}

async fn is_untouched(site: &Site, schema: &str) {
    let rows = format!("SELECT count(*) FROM {schema}.idempotency_keys");
    assert_eq!(site.number(&rows).await, 72, "{schema}");
    let touched = format!("{rows} WHERE owner IS NOT NULL OR worker IS NOT NULL OR result <> '\"a decoy\"'");
    assert_eq!(site.number(&touched).await, 0, "{schema}");
    let floor = format!("SELECT CAST(max(fence_floor) AS bigint) FROM {schema}.idempotency_keys_schema");
    assert_eq!(site.number(&floor).await, 0, "{schema}");
    assert_eq!(site.number(&format!("SELECT count(*) FROM {schema}.idempotency_keys_audit")).await, 0);
}

async fn search_path(site: &Site, path: &str) {
    site.execute(&format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = {path}', current_database()); END $$"
    ))
    .await;
}

/// Ends every connection but the one that says so: what comes next has settings as they are now.
async fn end_connections(site: &Site) {
    site.number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
}

fn in_ops(builder: Builder) -> Builder {
    short_lived(builder.schema("ops").connections(1))
}

pub(in crate::cases) async fn c14_every_statement_goes_to_the_schema_that_was_named(site: &Site) {
    for schema in ["public", "tenant1", "tenant2"] {
        decoy(site, schema).await;
    }
    site.execute("CREATE SCHEMA ops").await;
    search_path(site, "tenant1, public").await;
    let w = site.worker_by(in_ops).await;
    live(&w, "a").await;

    // Under a body the path changes, and every connection is a new one.
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "midway", &gate)).await }
    });
    gate.arrived().await;
    search_path(site, "tenant2").await;
    end_connections(site).await;
    gate.open();
    running.await.expect("no panic");
    live(&w, "b").await;

    // Where no path leads anywhere, and by a name that holds the schema.
    search_path(site, "nowhere").await;
    let by_name = site.worker_by(|builder| short_lived(builder.table("ops.idempotency_keys"))).await;
    live(&by_name, "c").await;
    let plain_rows = "SELECT count(*) FROM ops.idempotency_keys WHERE owner IS NOT NULL";
    assert_eq!(site.number(plain_rows).await, 3 * ROWS + 1);
    assert_eq!(site.number("SELECT count(*) FROM ops.idempotency_keys_audit").await, 3 * AUDITED);
    for schema in ["public", "tenant1", "tenant2"] {
        is_untouched(site, schema).await;
    }
}

/// What MySQL calls a schema is a database: another one than that of the connection.
pub(in crate::cases) async fn c14_every_statement_goes_to_the_database_that_was_named(site: &Site) {
    let ops = Backend::Mysql.fresh();
    let name = ops.url().rsplit('/').next().expect("a database").to_owned();
    // A table of the same name stands where the connection leads.
    drop(site.worker().await);
    let w = site.worker_by(|builder| short_lived(builder.schema(name.as_str()))).await;
    live(&w, "a").await;
    let by_name = format!("{name}.idempotency_keys");
    let w = site.worker_by(|builder| short_lived(builder.table(by_name.as_str()))).await;
    live(&w, "b").await;
    assert_eq!(site.number("SELECT COUNT(*) FROM idempotency_keys").await, 0);
    assert_eq!(site.number("SELECT COUNT(*) FROM idempotency_keys_audit").await, 0);
    assert_eq!(site.number(&format!("SELECT COUNT(*) FROM {by_name}")).await, 2 * ROWS);
    assert_eq!(site.number(&format!("SELECT COUNT(*) FROM {by_name}_audit")).await, 2 * AUDITED);
}

/// Without a schema it is the search path's first table, as it was found at the start: a path that changes under a
/// running worker would have two tables answer for one key.
pub(in crate::cases) async fn c14_a_table_that_was_found_stays_the_one(site: &Site) {
    decoy(site, "public").await;
    site.execute("CREATE SCHEMA ops").await;
    search_path(site, "ops").await;
    let w = site.worker_by(short_lived).await;
    live(&w, "a").await;
    search_path(site, "public").await;
    end_connections(site).await;
    assert_eq!(replayed(plain(&w, "a-0")).await, "a-0");
    live(&w, "b").await;
    assert_eq!(site.number("SELECT count(*) FROM ops.idempotency_keys").await, 2 * ROWS);
    is_untouched(site, "public").await;
}

#[idempotent(key = "c14-tx:<id>", mode = "transactional", idem = w.idem)]
async fn in_transaction(w: &Worker, tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<String, Fault> {
    w.effect(id);
    sqlx::raw_sql("SELECT 1").execute(&mut **tx).await.expect("a transaction that takes statements");
    Ok(id.to_owned())
}

/// A job inside of its caller's transaction meets the caller's search path, and keeps to the table all the same.
pub(in crate::cases) async fn c14_a_callers_search_path_leads_nowhere_else(site: &Site) {
    decoy(site, "public").await;
    site.execute(
        "INSERT INTO idempotency_keys (key, status, result) VALUES ('c14-tx:a', 'completed', '\"a decoy\"')",
    )
    .await;
    site.execute("CREATE SCHEMA ops").await;
    let named = site.worker_by(|builder| builder.schema("ops")).await;
    search_path(site, "ops").await;
    let found = site.worker().await;
    let mut caller = PgConnection::connect(site.database.url()).await.expect("a connection");
    sqlx::raw_sql("SET search_path = public").execute(&mut caller).await.expect("a path of its own");
    for (n, w) in [named, found].into_iter().enumerate() {
        let mut tx = caller.begin().await.expect("a transaction");
        let value = in_transaction(&w, &mut tx, "a").await.map_err(Fault::idem).expect("done or replayed");
        tx.commit().await.expect("a commit");
        assert_eq!((value.as_str(), site.effects("a")), ("a", 1), "round {n}");
    }
    assert_eq!(site.number("SELECT count(*) FROM ops.idempotency_keys WHERE status = 'completed'").await, 1);
}

/// Companions are those of the table's own schema, whoever else has some on the path.
pub(in crate::cases) async fn c14_companions_of_another_schema_are_not_taken(site: &Site) {
    decoy(site, "public").await;
    site.execute(
        "CREATE SCHEMA ops; CREATE TABLE ops.idempotency_keys (LIKE public.idempotency_keys INCLUDING ALL)",
    )
    .await;
    search_path(site, "ops, public").await;
    let error =
        Idem::builder().url(site.database.url()).migrate(false).connect().await.expect_err("incomplete");
    assert!(error.to_string().contains("CREATE TABLE"), "{error}");
    let w = site.worker_by(short_lived).await;
    live(&w, "a").await;
    assert_eq!(site.number("SELECT count(*) FROM ops.idempotency_keys_audit").await, AUDITED);
    is_untouched(site, "public").await;
}

pub(in crate::cases) async fn c14_a_schema_that_is_not_there_is_named(site: &Site) {
    let error =
        Idem::builder().url(site.database.url()).schema("nowhere").connect().await.expect_err("no schema");
    assert_eq!(error.kind(), idem_runtime::ErrorKind::Config);
    assert!(error.to_string().contains("there is no such schema"), "{error}");
}

pub(in crate::cases) async fn c14_namespaces_share_a_table_and_no_key(site: &Site) {
    let eu = site.worker_by(|builder| builder.namespace("eu")).await;
    let us = site.worker_by(|builder| builder.namespace("us")).await;
    let none = site.worker().await;
    for w in [&eu, &us, &none] {
        executed(plain(w, "a")).await;
        replayed(plain(w, "a")).await;
    }
    assert_eq!(site.effects("a"), 3);
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys").await, 3);
    let forgotten = eu.idem.forget("life-plain:a").force().await.expect("an answer");
    assert!(matches!(forgotten, Resolved::Changed { .. }));
    let changed = us.idem.resolve("life-plain:a", Resolution::Completed(None)).force().await;
    assert!(matches!(changed.expect("an answer"), Resolved::Changed { .. }));
    assert_eq!(replayed(plain(&none, "a")).await, "a");
    executed(plain(&eu, "a")).await;
    assert_eq!(site.effects("a"), 4);
}

const STARTS: usize = 10;

/// Ten processes meet an empty database, and each wants one key as soon as there is a table.
pub(in crate::cases) async fn c14_ten_processes_that_start_at_once_make_one_table(site: &Site) {
    let child = || Child::spawn(&mut site.child("cases::c14::names::a_process_that_starts"));
    let mut children: Vec<Child> = (0..STARTS).map(|_| child()).collect();
    for child in &mut children {
        child.expect("ready");
    }
    for child in &mut children {
        child.say("go");
    }
    let mut ran = 0;
    for child in &mut children {
        match child.expect("done").as_str() {
            "Executed" => ran += 1,
            "Replayed" | "Refused(InProgress)" => {}
            other => panic!("{other}\n{}", child.transcript()),
        }
    }
    assert_eq!((ran, site.effects("start")), (1, 1));
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys_schema").await, 1, "one of them made it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn a_process_that_starts() {
    let Some(parent) = Parent::attach() else { return };
    parent.say("ready");
    assert_eq!(parent.hear(), "go");
    let w = Worker::of_parent().await;
    let (_, outcome) = idem_runtime::with_outcome(plain(&w, "start")).await;
    parent.say(&format!("done {:?}", outcome.expect("a job was entered")));
}
