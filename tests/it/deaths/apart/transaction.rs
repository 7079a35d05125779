//! A process that stands still in its transaction: nobody can tell it from one that takes its time.

use idem_runtime::{ErrorKind, idempotent};
use idem_tests::Backend;
use sqlx::Transaction;

use crate::{
    cases::{
        call::{Fault, refused, replayed},
        site::{Site, Worker},
    },
    deaths::{
        jobs::{Ends, Job},
        stop::Stop,
        worker::stopped_at,
    },
    transact::{
        dialect::Dialect,
        stage::{Stage, plays},
    },
};

#[idempotent(
    key = "deaths-inside:<id>",
    mode = "transactional",
    on_busy = "error",
    allow_overlap(inside),
    idem = w.idem
)]
async fn impatient<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<String, Fault> {
    w.effect(id);
    DB::run(tx, "SELECT 1").await?;
    Ok("another".to_owned())
}

async fn stands_still<DB: Dialect>(stage: &Stage<'_, DB>) {
    let mut child = stopped_at(stage.site, Job::Inside, Ends::Well, Stop::AfterEffect, "x", "itself");
    child.stop();
    if DB::BACKEND == Backend::Sqlite {
        // There is one writer, and it is the one.
        let mut hand = stage.site.connection().await;
        hand.execute("PRAGMA busy_timeout = 50").await;
        hand.try_execute("BEGIN IMMEDIATE").await.expect_err("it has the database");
    } else {
        for _ in 0..2 {
            let mut tx = stage.begin().await;
            refused(ErrorKind::InProgress, impatient(&stage.w, &mut tx, "x")).await;
            impatient(&stage.w, &mut tx, "y").await.expect("another key is free");
            tx.rollback().await.expect("a rollback");
        }
    }
    stage.lacks("deaths-inside:x", "x").await;
    child.resume();
    child.say("go on");
    assert_eq!(child.expect("ended"), "Runs");
    let mut tx = stage.begin().await;
    assert_eq!(replayed(impatient(&stage.w, &mut tx, "x")).await, "itself");
    tx.commit().await.expect("a commit");
    stage.holds("deaths-inside:x", "x").await;
    assert_eq!(stage.w.effects("x"), 1);
}

pub(super) async fn a_transaction_that_stands_still_holds_its_key_and_no_more(site: &Site) {
    plays!(site, stands_still);
}
