//! The loser of a race sees no row at all, for a moment: it looks again, and never fails or runs a second time.

use std::{sync::Arc, time::Duration};

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, with_outcome};
use idem_tests::Backend;
use tokio::{
    sync::Barrier,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use super::{
    call::{executed, replayed},
    site::{Connected, Site, Worker},
};

#[idempotent(key = "c6:<id>", idem = w.idem)]
async fn job(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("ours".to_owned())
}

#[idempotent(key = "c6-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok("ours".to_owned())
}

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

/// What every new connection to the database starts its transactions with, ours included. On MySQL there is no such
/// thing, and ours would not heed it: there it is the foreign transactions that differ.
async fn isolate(site: &Site, level: &str) {
    if site.backend() == Backend::Postgres {
        let alter = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L',
             current_database(), '{level}'); END $$"
        );
        site.execute(&alter).await;
    }
}

/// A foreign connection of this level.
async fn foreign(site: &Site, level: &str) -> Connected {
    let mut hand = site.connection().await;
    if site.backend() == Backend::Mysql {
        hand.execute(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await;
    }
    hand
}

type Called = JoinHandle<(Result<String, Error>, Option<Outcome>)>;

/// A foreign claim that is not committed yet, and a call of ours that has met it.
async fn meet(site: &Site, w: &Worker, id: &str, columns: &str, values: &str) -> (Connected, Called) {
    let level = LEVELS.into_iter().find(|level| id.ends_with(&level.replace(' ', "-")));
    let mut hand = foreign(site, level.expect("a level in the id")).await;
    hand.execute("BEGIN").await;
    let insert = format!("INSERT INTO idempotency_keys (\"key\"{columns}) VALUES ('c6:{id}'{values})");
    hand.execute(&insert).await;
    let call = tokio::spawn({
        let (w, id) = (w.clone(), id.to_owned());
        async move { with_outcome(job(&w, &id)).await }
    });
    sleep(Duration::from_millis(80)).await;
    assert!(!call.is_finished(), "nobody knows yet");
    (hand, call)
}

pub(super) async fn c6_a_claim_that_meets_an_uncommitted_one_learns_what_became_of_it(site: &Site) {
    for level in LEVELS {
        isolate(site, level).await;
        let w = site.worker().await;
        let id = |word: &str| format!("{word}-{}", level.replace(' ', "-"));

        let (mut hand, call) = meet(site, &w, &id("claimed"), "", "").await;
        hand.execute("COMMIT").await;
        let (result, _) = call.await.expect("no panic");
        assert_eq!(result.expect_err("a foreign claim").kind(), ErrorKind::InProgress, "{level}");

        let columns = ", status, completed_at, result";
        let values = ", 'completed', CURRENT_TIMESTAMP, '\"theirs\"'";
        let (mut hand, call) = meet(site, &w, &id("completed"), columns, values).await;
        hand.execute("COMMIT").await;
        let (result, outcome) = call.await.expect("no panic");
        assert_eq!(outcome, Some(Outcome::Replayed), "{level}: {result:?}");
        assert_eq!(result.expect("a replay"), "theirs");

        let (mut hand, call) = meet(site, &w, &id("undone"), "", "").await;
        hand.execute("ROLLBACK").await;
        let (result, outcome) = call.await.expect("no panic");
        assert_eq!(outcome, Some(Outcome::Executed), "{level}: {result:?}");

        let (mut hand, call) = meet(site, &w, &id("deleted"), "", "").await;
        hand.execute(&format!("COMMIT; DELETE FROM idempotency_keys WHERE \"key\" = 'c6:{}'", id("deleted")))
            .await;
        let (result, outcome) = call.await.expect("no panic");
        match outcome {
            Some(Outcome::Executed) => assert_eq!(site.effects(&id("deleted")), 1),
            Some(Outcome::Refused(ErrorKind::InProgress)) => assert_eq!(site.effects(&id("deleted")), 0),
            other => panic!("{level}: {other:?} {result:?}"),
        }
        assert_eq!((site.effects(&id("claimed")), site.effects(&id("completed"))), (0, 0));
        assert_eq!(site.effects(&id("undone")), 1);
    }
}

/// Rows come and go under the claims: a collector and a foreign worker are at work.
pub(super) async fn c6_a_row_that_is_gone_when_it_is_read_is_claimed_again(site: &Site) {
    for level in LEVELS {
        isolate(site, level).await;
        let w = site.worker().await;
        let mut hand = foreign(site, level).await;
        let ignoring = match site.backend() {
            Backend::Mysql => ["IGNORE", ""],
            _ => ["", "ON CONFLICT DO NOTHING"],
        };
        let prefix = format!("churn-{}", level.replace(' ', "-"));
        let churning = tokio::spawn({
            let prefix = prefix.clone();
            async move {
                for id in 0..60 {
                    for _ in 0..3 {
                        let key = format!("c6:{prefix}-{id}");
                        let insert = format!(
                            "INSERT {} INTO idempotency_keys (\"key\", status, completed_at, result)
                             VALUES ('{key}', 'completed', CURRENT_TIMESTAMP, '\"theirs\"') {}",
                            ignoring[0], ignoring[1]
                        );
                        let delete =
                            format!("DELETE FROM idempotency_keys WHERE \"key\" = '{key}' AND owner IS NULL");
                        // Under the stricter levels the other side's writes may be refused; ours may not.
                        for statement in [insert, delete] {
                            let _ = hand.try_execute(&statement).await;
                        }
                    }
                }
            }
        });
        for id in 0..60 {
            let id = format!("{prefix}-{id}");
            loop {
                let (result, outcome) = with_outcome(job(&w, &id)).await;
                match outcome {
                    Some(Outcome::Executed) => break,
                    Some(Outcome::Replayed) => assert_eq!(result.expect("a replay"), "theirs", "{level}"),
                    other => panic!("{level}: {other:?} {result:?}"),
                }
            }
        }
        churning.await.expect("no panic");
        for id in 0..60 {
            assert_eq!(site.effects(&format!("{prefix}-{id}")), 1);
        }
    }
}

pub(super) async fn c6_of_callers_at_once_one_runs_at_every_isolation(site: &Site) {
    for level in LEVELS {
        isolate(site, level).await;
        let workers = [site.worker().await, site.worker().await];
        for round in 0..20 {
            let start = Arc::new(Barrier::new(8));
            let mut calls = JoinSet::new();
            for caller in 0..8 {
                let (w, start) = (workers[caller % 2].clone(), Arc::clone(&start));
                let id = format!("race-{}-{round}", level.replace(' ', "-"));
                calls.spawn(async move {
                    start.wait().await;
                    job(&w, &id).await
                });
            }
            for result in calls.join_all().await {
                match result {
                    Ok(value) => assert_eq!(value, "ours"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::InProgress, "{level}: {error}"),
                }
            }
            let id = format!("race-{}-{round}", level.replace(' ', "-"));
            assert_eq!(site.effects(&id), 1, "{level}");
            assert_eq!(replayed(job(&workers[0], &id)).await, "ours");
        }
    }
}

pub(super) async fn c6_a_record_that_meets_an_uncommitted_row_is_written_in_the_end(site: &Site) {
    for level in LEVELS {
        isolate(site, level).await;
        let w = site.worker().await;
        for (end, value) in [("ROLLBACK", "ours"), ("COMMIT", "ours")] {
            let id = format!("{}-{}", level.replace(' ', "-"), end.to_lowercase());
            let mut hand = foreign(site, level).await;
            hand.execute("BEGIN").await;
            hand.execute(&format!("INSERT INTO idempotency_keys (\"key\") VALUES ('c6-mail:{id}')")).await;
            let call = tokio::spawn({
                let (w, id) = (w.clone(), id.clone());
                async move { executed(mail(&w, &id)).await }
            });
            sleep(Duration::from_millis(80)).await;
            hand.execute(end).await;
            assert_eq!(call.await.expect("no panic"), value);
            assert_eq!(replayed(mail(&w, &id)).await, value, "{level} {end}");
            assert_eq!(site.effects(&id), 1);
        }
    }
}
