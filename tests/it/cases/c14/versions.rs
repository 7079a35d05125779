//! Tables of an older or a newer build, and columns of others.

use idem_runtime::{ErrorKind, Idem};
use idem_tests::Backend;

use crate::cases::{
    call::{executed, replayed},
    life::{ROWS, live, plain, short_lived},
    site::Site,
};

/// Why an `Idem` does not start here.
async fn refusal(site: &Site) -> String {
    let mut texts = Vec::new();
    for create in [true, false] {
        let error =
            Idem::builder().url(site.database.url()).migrate(create).connect().await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(!error.is_retryable());
        texts.push(error.to_string());
    }
    assert_eq!(texts[0], texts[1], "whoever may make the table does not mend it");
    texts.remove(0)
}

pub(in crate::cases) async fn c14_an_older_build_is_refused_by_a_newer_table(site: &Site) {
    let w = site.worker().await;
    executed(plain(&w, "a")).await;
    // What the migration of a newer build may do.
    site.execute("ALTER TABLE idempotency_keys ADD COLUMN tomorrow integer").await;
    site.execute("UPDATE idempotency_keys_schema SET version = 2").await;
    let text = refusal(site).await;
    assert!(text.contains("schema version 2") && text.contains("update `idem-runtime`"), "{text}");
    // Whoever runs already goes on: what a newer build adds is nothing to it.
    replayed(plain(&w, "a")).await;
    executed(plain(&w, "b")).await;
    // Of two lines, by a hand that ran two scripts, the higher counts. On MySQL there can be but one.
    if site.backend() == Backend::Mysql {
        return;
    }
    site.execute("UPDATE idempotency_keys_schema SET version = 1").await;
    site.execute("INSERT INTO idempotency_keys_schema (version) VALUES (3)").await;
    let text = refusal(site).await;
    assert!(text.contains("schema version 3"), "{text}");
}

/// What can be left out of a hand-made or older table, and added afterwards.
const ADDABLE: [&str; 14] = [
    "job",
    "template",
    "mode",
    "on_stale",
    "owner",
    "fence",
    "attempt",
    "takeovers",
    "lease_until",
    "fingerprint",
    "result",
    "error",
    "worker",
    "alerted_at",
];

pub(in crate::cases) async fn c14_a_newer_build_says_what_an_older_table_lacks(site: &Site) {
    for all in [false, true] {
        let site = Site::on(site.backend());
        executed(plain(&site.worker().await, "old")).await;
        let rounds: Vec<&[&str]> = if all { vec![&ADDABLE] } else { ADDABLE.chunks(1).collect() };
        for (n, lacking) in rounds.into_iter().enumerate() {
            if site.backend() == Backend::Sqlite {
                site.execute("DROP INDEX IF EXISTS idempotency_keys_claims").await;
            }
            for column in lacking {
                site.execute(&format!("ALTER TABLE idempotency_keys DROP COLUMN {column}")).await;
            }
            let text = refusal(&site).await;
            let (_, alters) = text.split_once("lacks columns; run\n").unwrap_or_else(|| panic!("{text}"));
            assert_eq!(alters.lines().count(), lacking.len(), "{text}");
            for column in lacking {
                assert!(alters.contains(&format!("ADD COLUMN {column} ")), "{text}");
            }
            site.execute(alters).await;
            let w = site.worker_by(|builder| short_lived(builder.migrate(false))).await;
            executed(plain(&w, &format!("{all}-{n}"))).await;
            // What was completed stays so, even where its result is gone.
            plain(&w, "old").await.map_or_else(
                |error| assert_eq!(error.idem().kind(), ErrorKind::AlreadyCompleted),
                |value| assert_eq!(value, "old"),
            );
            if all {
                live(&w, "whole").await;
            }
        }
        assert_eq!(site.effects("old"), 1);
    }
}

pub(in crate::cases) async fn c14_columns_of_others_are_left_alone(site: &Site) {
    let w = site.worker_by(short_lived).await;
    for column in ["tomorrow integer", "tenant varchar(20) NOT NULL DEFAULT 'none'", "note text"] {
        site.execute(&format!("ALTER TABLE idempotency_keys ADD COLUMN {column}")).await;
    }
    live(&w, "running").await;
    let fresh = site.worker_by(short_lived).await;
    live(&fresh, "fresh").await;
    site.set("life-plain:fresh-1", "tomorrow = 7, tenant = 'acme', note = 'theirs'").await;
    replayed(plain(&w, "fresh-1")).await;
    let mine =
        "SELECT count(*) FROM idempotency_keys WHERE tomorrow = 7 AND tenant = 'acme' AND note = 'theirs'";
    assert_eq!(site.number(mine).await, 1);
    let untouched =
        "SELECT count(*) FROM idempotency_keys WHERE tomorrow IS NULL AND tenant = 'none' AND note IS NULL";
    assert_eq!(site.number(untouched).await, 2 * ROWS - 1);
}

/// A claim could not be written, and, worse, the record of an effect that has happened.
pub(in crate::cases) async fn c14_a_column_of_others_that_must_be_given_is_named(site: &Site) {
    site.worker().await;
    match site.backend() {
        Backend::Memory | Backend::Postgres | Backend::Mysql => {
            site.execute("ALTER TABLE idempotency_keys ADD COLUMN tenant text NOT NULL").await;
        }
        // SQLite adds no such column; a table can only be made with it.
        Backend::Sqlite => {
            let ddl = Idem::builder().url(site.database.url()).ddl().expect("the DDL");
            let ddl = ddl.replacen("completed_at TEXT", "completed_at TEXT, tenant TEXT NOT NULL", 1);
            site.execute(&format!("DROP TABLE idempotency_keys; {ddl}")).await;
        }
    }
    let text = refusal(site).await;
    assert!(text.contains("column `tenant`") && text.contains("without a default"), "{text}");
    site.execute("ALTER TABLE idempotency_keys DROP COLUMN tenant").await;
    executed(plain(&site.worker().await, "a")).await;
}

/// Tables that happen to be called as our companions are.
pub(in crate::cases) async fn c14_a_companion_of_somebody_else_is_named(site: &Site) {
    for (companion, lacking) in [("audit", "actor"), ("schema", "version")] {
        site.clear().await;
        let table = format!("idempotency_keys_{companion}");
        site.execute(&format!("CREATE TABLE {table} (id integer, \"key\" varchar(20), fence_floor bigint)"))
            .await;
        let text = refusal(site).await;
        assert!(text.contains(&table) && text.contains(&format!("no column `{lacking}`")), "{text}");
        assert!(text.contains("choose another name"), "{text}");
        let w = site.worker_by(|builder| builder.table(format!("ours_{companion}"))).await;
        executed(plain(&w, "a")).await;
    }
}

/// A first start that died half way, or a dump that left the companions out.
pub(in crate::cases) async fn c14_what_is_half_there_is_made_whole(site: &Site) {
    executed(plain(&site.worker().await, "a")).await;
    let half = [
        "DROP TABLE idempotency_keys_audit",
        "DROP TABLE idempotency_keys_schema",
        "DELETE FROM idempotency_keys_schema",
        "DROP TABLE idempotency_keys_audit; DROP TABLE idempotency_keys_schema",
    ];
    for (n, half) in half.into_iter().enumerate() {
        site.execute(half).await;
        let error =
            Idem::builder().url(site.database.url()).migrate(false).connect().await.expect_err("half there");
        assert!(error.to_string().contains("missing or incomplete"), "{error}");
        let w = site.worker_by(short_lived).await;
        replayed(plain(&w, "a")).await;
        live(&w, &n.to_string()).await;
    }
}
