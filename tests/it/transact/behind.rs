//! What MySQL and MariaDB do behind the back of a transaction: they end it where two wait for each other, and before
//! a statement that changes a table.

use std::time::Duration;

use idem_runtime::{Error, ErrorKind, idempotent};
use sqlx::{MySql, Transaction};
use tokio::time::timeout;

use super::{
    dialect::Dialect,
    jobs::job,
    stage::{Stage, put},
};
use crate::cases::{
    call::{Fault, executed, refused, replayed},
    gate::Gate,
    site::Worker,
};

/// Two transactions that want each other's key: one of them is rolled back as a whole, and is told so.
pub(super) async fn a_deadlock_costs_one_transaction_and_no_effect(stage: &Stage<'_, MySql>) {
    let (mut first, mut second) = (stage.begin().await, stage.begin().await);
    put::<MySql>(&mut first, "first").await.expect("a row");
    put::<MySql>(&mut second, "second").await.expect("a row");
    executed(job(&stage.w, &mut first, "x")).await;
    executed(job(&stage.w, &mut second, "y")).await;

    let crossing = async { tokio::join!(job(&stage.w, &mut first, "y"), job(&stage.w, &mut second, "x")) };
    let (y, x) = timeout(Duration::from_secs(30), crossing).await.expect("the database ends one of them");
    let lost = |result: &Result<String, Fault>| matches!(result, Err(Fault::Idem(error @ Error::TransactionLost { .. })) if error.is_retryable());
    assert!(lost(&x) != lost(&y), "one of the two: {x:?}, {y:?}");
    let (winner, loser, won, gone) =
        if lost(&y) { (second, first, "second", "first") } else { (first, second, "first", "second") };
    loser.commit().await.expect_err("nothing is left to commit");
    winner.commit().await.expect("a commit");

    // The winner has waited for the other's claim, and run the job when that was gone.
    stage.holds("job:x", "x").await;
    stage.holds("job:y", "y").await;
    assert_eq!((stage.rows(won).await, stage.rows(gone).await), (1, 0));

    let mut again = stage.begin().await;
    replayed(job(&stage.w, &mut again, "x")).await;
    replayed(job(&stage.w, &mut again, "y")).await;
    again.commit().await.expect("a commit");
}

/// A deadlock over the application's own rows, in the body.
#[idempotent(key = "locking:<id>", mode = "transactional", idem = w.idem)]
async fn locking(
    w: &Worker,
    tx: &mut Transaction<'_, MySql>,
    id: &str,
    rows: [&str; 2],
    gate: &Gate,
    swallows: bool,
) -> Result<String, Fault> {
    w.effect(id);
    put::<MySql>(tx, id).await?;
    for (at, row) in rows.into_iter().enumerate() {
        if at == 1 {
            gate.pass().await;
        }
        let update = format!("UPDATE accounts SET cents = cents + 1 WHERE id = '{row}'");
        match MySql::run(tx, &update).await {
            Err(_) if swallows => {}
            done => drop(done?),
        }
    }
    Ok(format!("did {id}"))
}

async fn deadlock_in_the_body(stage: &Stage<'_, MySql>, swallows: bool) {
    stage.execute("CREATE TABLE accounts (id varchar(10) PRIMARY KEY, cents int) ENGINE = InnoDB").await;
    stage.execute("INSERT INTO accounts VALUES ('a', 0), ('b', 0)").await;
    let (mut first, mut second) = (stage.begin().await, stage.begin().await);
    let gates = (Gate::new(), Gate::new());
    let crossing = async {
        let calls = async {
            tokio::join!(
                locking(&stage.w, &mut first, "x", ["a", "b"], &gates.0, swallows),
                locking(&stage.w, &mut second, "y", ["b", "a"], &gates.1, swallows),
            )
        };
        let both = async {
            gates.0.arrived().await;
            gates.1.arrived().await;
            gates.0.open();
            gates.1.open();
        };
        tokio::join!(calls, both).0
    };
    let (x, y) = timeout(Duration::from_secs(30), crossing).await.expect("the database ends one of them");
    let told =
        |result: &Result<String, Fault>| matches!(result, Err(Fault::Idem(Error::TransactionLost { .. })));
    assert!(x.is_ok() != y.is_ok() && (told(&x) || told(&y)), "one goes on, one is told: {x:?}, {y:?}");
    let won = x.is_ok();
    for (tx, alive) in [(first, won), (second, !won)] {
        assert_eq!(tx.commit().await.is_ok(), alive);
    }
    let (done, undone) = if won { ("x", "y") } else { ("y", "x") };
    stage.holds(&format!("locking:{done}"), done).await;
    stage.lacks(&format!("locking:{undone}"), undone).await;
}

pub(super) async fn a_deadlock_in_the_body_is_told_in_the_place_of_its_error(stage: &Stage<'_, MySql>) {
    deadlock_in_the_body(stage, false).await;
}

pub(super) async fn a_deadlock_that_the_body_swallows_is_no_success(stage: &Stage<'_, MySql>) {
    deadlock_in_the_body(stage, true).await;
}

/// A statement that commits what came before it.
#[idempotent(key = "committing:<id>", mode = "transactional", idem = w.idem)]
async fn committing(
    w: &Worker,
    tx: &mut Transaction<'_, MySql>,
    id: &str,
    fails: bool,
) -> Result<String, Fault> {
    w.effect(id);
    put::<MySql>(tx, id).await?;
    MySql::run(tx, "CREATE TABLE made_by_the_body (id int)").await?;
    if fails { Err(Fault::own("after the commit")) } else { Ok(format!("did {id}")) }
}

pub(super) async fn an_implicit_commit_is_told_and_the_job_is_done(stage: &Stage<'_, MySql>) {
    let mut tx = stage.begin().await;
    refused(ErrorKind::TransactionLost, committing(&stage.w, &mut tx, "x", false)).await;
    // Nobody can undo what was committed; all of the job is there, and a repeat knows.
    drop(tx);
    stage.holds("committing:x", "x").await;
    let mut tx = stage.begin().await;
    assert_eq!(replayed(committing(&stage.w, &mut tx, "x", false)).await, "did x");
    tx.commit().await.expect("a commit");
    assert_eq!(stage.w.effects("x"), 1);
}

pub(super) async fn an_implicit_commit_before_an_error_leaves_the_key_to_a_person(stage: &Stage<'_, MySql>) {
    let mut tx = stage.begin().await;
    refused(ErrorKind::TransactionLost, committing(&stage.w, &mut tx, "x", true)).await;
    drop(tx);
    // The body's row is committed and its outcome is not: the claim stands, and goes stale.
    assert_eq!(stage.rows("x").await, 1);
    let mut tx = stage.begin().await;
    refused(ErrorKind::InProgress, committing(&stage.w, &mut tx, "x", false)).await;
    tx.commit().await.expect("the transaction goes on");
    stage.execute("UPDATE idempotency_keys SET lease_until = 1").await;
    let mut tx = stage.begin().await;
    refused(ErrorKind::NeedsReview, committing(&stage.w, &mut tx, "x", false)).await;
    tx.commit().await.expect("the transaction goes on");
    assert_eq!(stage.w.effects("x"), 1);
}

/// Waits for nobody.
#[idempotent(key = "hasty:<id>", mode = "transactional", on_busy = "error", idem = w.idem)]
async fn hasty(w: &Worker, tx: &mut Transaction<'_, MySql>, id: &str, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    put::<MySql>(tx, id).await?;
    gate.pass().await;
    Ok(format!("did {id}"))
}

/// The session's own limit of waits for locks is not ours to change.
pub(super) async fn the_limit_of_waits_is_as_it_was(stage: &Stage<'_, MySql>) {
    let limit = "SELECT CAST(@@SESSION.innodb_lock_wait_timeout AS SIGNED)";
    let (mut first, mut second) = (stage.begin().await, stage.begin().await);
    MySql::run(&mut second, "SET SESSION innodb_lock_wait_timeout = 17").await.expect("a setting");
    executed(job(&stage.w, &mut second, "other")).await;
    assert_eq!(MySql::number(&mut second, limit).await.expect("a number"), 17);

    let gate = Gate::new();
    let running = async { executed(hasty(&stage.w, &mut first, "x", &gate)).await };
    let waiting = async {
        gate.arrived().await;
        refused(ErrorKind::InProgress, hasty(&stage.w, &mut second, "x", &gate)).await;
        gate.open();
    };
    tokio::join!(running, waiting);
    assert_eq!(MySql::number(&mut second, limit).await.expect("a number"), 17);
    second.commit().await.expect("the transaction goes on");
    first.commit().await.expect("a commit");
}

#[idempotent(key = "patient:<id>", mode = "transactional", wait_for = "36500d", idem = w.idem)]
async fn patient(w: &Worker, tx: &mut Transaction<'_, MySql>, id: &str) -> Result<String, Fault> {
    w.effect(id);
    put::<MySql>(tx, id).await?;
    Ok(format!("did {id}"))
}

/// A wait that is longer than a server can be told, in a session that takes no setting that is out of range.
pub(super) async fn a_wait_may_be_as_long_as_one_likes(stage: &Stage<'_, MySql>) {
    let mut tx = stage.begin().await;
    MySql::run(&mut tx, "SET SESSION sql_mode = 'STRICT_ALL_TABLES'").await.expect("a setting");
    executed(patient(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.holds("patient:x", "x").await;
}
