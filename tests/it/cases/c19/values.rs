//! Values that somebody else has written: none, words of tomorrow, and what cannot be read at all.

use std::time::Duration;

use idem_runtime::{ErrorKind, Resolution, Resolved, record::Status};
use idem_tests::Backend;
use tokio::task::JoinSet;

use crate::cases::{
    call::{Fault, executed, refused, replayed},
    gate::Gate,
    life::{held, mail, plain},
    site::{Site, Worker},
};

/// Lets every column but the key be without a value.
async fn loosen(site: &Site) {
    match site.backend() {
        Backend::Memory => {}
        Backend::Mysql => {
            site.worker().await;
            site.execute(
                "ALTER TABLE idempotency_keys
                     MODIFY status varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
                     MODIFY fence bigint NULL, MODIFY attempt int NULL, MODIFY takeovers int NULL,
                     MODIFY created_at timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6)",
            )
            .await;
        }
        Backend::Sqlite => {
            let ddl = idem_runtime::Idem::builder().url(site.database.url()).ddl().expect("the DDL");
            let (table, rest) = ddl.split_once(") WITHOUT ROWID").expect("the table comes first");
            let (key, columns) = table.split_once("PRIMARY KEY,").expect("the key comes first");
            let columns = columns.replace(" NOT NULL", "");
            site.execute(&format!("{key}PRIMARY KEY,{columns}) WITHOUT ROWID{rest}")).await;
        }
        Backend::Postgres => {
            site.worker().await;
            for column in ["status", "fence", "attempt", "takeovers", "created_at"] {
                site.execute(&format!("ALTER TABLE idempotency_keys ALTER COLUMN {column} DROP NOT NULL"))
                    .await;
            }
        }
    }
}

const NOTHING: &str = "(\"key\", status, fence, attempt, takeovers, created_at)";

/// A row in which nobody wrote a state is a claim without owner, as one with nothing but its key is: busy, and after a
/// while for a person.
pub(in crate::cases) async fn c19_a_row_of_nulls_is_a_claim_without_owner(site: &Site) {
    loosen(site).await;
    let w = site.worker().await;
    let insert = |key: &str, born: &str| {
        format!("INSERT INTO idempotency_keys {NOTHING} VALUES ('{key}', NULL, NULL, NULL, NULL, {born})")
    };
    site.execute(&insert("life-plain:new", "CURRENT_TIMESTAMP")).await;
    let error = refused(ErrorKind::InProgress, plain(&w, "new")).await.idem();
    assert!(error.retry_after() > Some(Duration::from_mins(14)), "{error:?}");
    assert_eq!(w.row("life-plain:new").await.status, Status::Processing);

    // Nobody knows since when: it is turned over to a person.
    for (id, resolution) in [
        ("retried", Resolution::Retry),
        ("failed", Resolution::Failed),
        ("done", Resolution::Completed(Some("found out".into()))),
    ] {
        let key = format!("life-plain:{id}");
        site.execute(&insert(&key, "NULL")).await;
        refused(ErrorKind::NeedsReview, plain(&w, id)).await;
        assert_eq!(w.row(&key).await.status, Status::NeedsReview);
        let resolved = w.idem.resolve(&key, resolution).await.expect("an answer");
        assert!(matches!(resolved, Resolved::Changed { .. }), "{resolved:?}");
    }
    assert_eq!(executed(plain(&w, "retried")).await, "retried");
    refused(ErrorKind::PreviouslyFailed, plain(&w, "failed")).await;
    assert_eq!(replayed(plain(&w, "done")).await, "found out");
    assert_eq!(site.ledger.total(), 1);

    // One that a person frees as it is, one that is forgotten, one that is replaced by the record of an effect.
    for id in ["freed", "forgotten"] {
        site.execute(&insert(&format!("life-plain:{id}"), "NULL")).await;
    }
    let freed = w.idem.resolve("life-plain:freed", Resolution::Retry).await.expect("an answer");
    assert!(matches!(freed, Resolved::Changed { .. }), "{freed:?}");
    let forgotten = w.idem.forget("life-plain:forgotten").await.expect("an answer");
    assert!(matches!(forgotten, Resolved::Changed { .. }), "{forgotten:?}");
    site.execute(&insert("life-mail:sent", "NULL")).await;
    assert_eq!(executed(mail(&w, "sent")).await, "sent");
    assert_eq!(replayed(mail(&w, "sent")).await, "sent");
    assert_eq!(w.idem.purge().await.expect("a purge"), 0, "nothing of it is past its time");
}

/// A completed row in which the rest is missing is completed all the same.
pub(in crate::cases) async fn c19_a_completion_of_nulls_is_one(site: &Site) {
    loosen(site).await;
    let w = site.worker().await;
    for (status, kind) in [
        ("completed", ErrorKind::AlreadyCompleted),
        ("failed", ErrorKind::PreviouslyFailed),
        ("needs_review", ErrorKind::NeedsReview),
    ] {
        let insert = format!(
            "INSERT INTO idempotency_keys {NOTHING} VALUES ('life-plain:{status}', '{status}', NULL, NULL, NULL, NULL)"
        );
        site.execute(&insert).await;
        refused(kind, plain(&w, status)).await;
    }
    let insert = format!(
        "INSERT INTO idempotency_keys {NOTHING} VALUES ('life-plain:released', 'released', NULL, NULL, NULL, NULL)"
    );
    site.execute(&insert).await;
    executed(plain(&w, "released")).await;
    assert!(w.row("life-plain:released").await.fence > 0);
    assert_eq!(site.ledger.total(), 1);
}

/// The holder's own row, under its hands.
pub(in crate::cases) async fn c19_a_state_that_is_wiped_out_under_its_holder_is_written_anew(site: &Site) {
    loosen(site).await;
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { executed(held(&w, "wiped", &gate)).await }
    });
    gate.arrived().await;
    site.set("life:wiped", "status = NULL, attempt = NULL, takeovers = NULL").await;
    let before = w.row("life:wiped").await.lease_until;
    w.row_such_that("life:wiped", "renewed", |row| row.lease_until > before).await;
    gate.open();
    assert_eq!(running.await.expect("no panic"), "wiped");
    assert_eq!(w.row("life:wiped").await.status, Status::Completed);
}

const WORDS: [&str; 8] = ["paused", "Completed", "COMPLETED", "completed ", " processing", "", "done", "🙂"];

pub(in crate::cases) async fn c19_a_state_of_a_newer_build_is_nobodys_to_touch(site: &Site) {
    let w = site.worker().await;
    for (n, word) in WORDS.into_iter().enumerate() {
        for job in ["plain", "mail"] {
            site.execute(&format!(
                "INSERT INTO idempotency_keys (\"key\", status, lease_until, expires_at)
                 VALUES ('life-{job}:{n}', '{word}', 1, 1)"
            ))
            .await;
        }
        let id = n.to_string();
        refused(ErrorKind::InProgress, plain(&w, &id)).await;
        refused(ErrorKind::InProgress, mail(&w, &id)).await;
        let resolved =
            w.idem.resolve(format!("life-plain:{id}"), Resolution::Retry).await.expect("an answer");
        assert!(matches!(resolved, Resolved::Refused { .. }), "{word}: {resolved:?}");
    }
    assert_eq!(w.idem.purge().await.expect("a purge"), 0);
    assert_eq!(site.ledger.total(), 0);
    for (n, word) in WORDS.into_iter().enumerate() {
        for job in ["plain", "mail"] {
            let row = w.row(&format!("life-{job}:{n}")).await;
            assert_eq!((row.status.as_str(), row.attempt, row.owner), (word, 0, None));
        }
    }
}

pub(in crate::cases) async fn c19_a_state_of_a_newer_build_ends_its_holders_claim(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let running = tokio::spawn({
        let (w, gate) = (w.clone(), gate.clone());
        async move { refused(ErrorKind::ClaimLost, held(&w, "x", &gate)).await }
    });
    gate.arrived().await;
    site.set("life:x", "status = 'paused', lease_until = 1").await;
    gate.open();
    running.await.expect("no panic");
    let row = w.row("life:x").await;
    assert_eq!((row.status.as_str(), row.lease_until), ("paused", Some(1)), "neither ended nor renewed");
}

/// SQLite holds any value in any column.
pub(in crate::cases) async fn c19_a_value_that_cannot_be_read_stops_its_own_key_alone(site: &Site) {
    let w = site.worker().await;
    let wrong = [
        ("status", "x'00ff'"),
        ("owner", "x'00ff'"),
        ("fence", "'many'"),
        ("attempt", "'many'"),
        ("lease_until", "1.5"),
        ("result", "x'7b7d'"),
        ("expires_at", "'tomorrow'"),
    ];
    for (column, value) in wrong {
        site.execute(&format!("INSERT INTO idempotency_keys (\"key\") VALUES ('life-plain:{column}')")).await;
        site.set(&format!("life-plain:{column}"), &format!("{column} = {value}")).await;
    }
    // Among others in one statement, and by itself.
    for round in 0..2 {
        let mut calls = JoinSet::new();
        for id in wrong
            .map(|(column, _)| column.to_owned())
            .into_iter()
            .chain((0..40).map(|n| format!("{round}-{n}")))
        {
            let w = w.clone();
            calls.spawn(async move { (id.clone(), call(&w, &id).await) });
        }
        for (id, result) in calls.join_all().await {
            match wrong.iter().find(|(column, _)| *column == id) {
                None => assert_eq!(result.expect("done"), id),
                Some((column, _)) => {
                    let error = result.expect_err("it cannot be read").idem();
                    assert_eq!(error.kind(), ErrorKind::Store);
                    assert!(error.to_string().contains(&format!("column `{column}` holds `")), "{error}");
                }
            }
        }
    }
    assert_eq!(site.ledger.total(), 80, "what cannot be read is not free");
    let error = w.idem.lookup("life-plain:fence").await.expect_err("it cannot be read");
    assert!(error.to_string().contains("column `fence` holds `TEXT`"), "{error}");
}

async fn call(w: &Worker, id: &str) -> Result<String, Fault> {
    plain(w, id).await
}
