//! A completion that collides is never half of a success.

use idem_runtime::{ErrorKind, idempotent};
use sqlx::{Postgres, Transaction};

use super::super::{
    call::{Fault, executed, refused},
    site::{Site, Worker},
};
use crate::transact::stage::{Stage, put};

#[idempotent(key = "c9-inside:<id>", mode = "transactional", idem = w.idem)]
async fn job(w: &Worker, tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<(), Fault> {
    w.effect(id);
    put::<Postgres>(tx, id).await?;
    Ok(())
}

/// A stage on which the first three completions collide, where every transaction is serializable.
async fn colliding<'s>(site: &'s Site, code: &str) -> Stage<'s, Postgres> {
    site.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable',
         current_database()); END $$",
    )
    .await;
    let stage = Stage::on(site).await;
    collides(&stage, code).await;
    stage
}

async fn collides(stage: &Stage<'_, Postgres>, code: &str) {
    stage
        .execute(&format!(
            "DROP TRIGGER IF EXISTS collides ON idempotency_keys;
            DROP SEQUENCE IF EXISTS completions;
            CREATE SEQUENCE completions;
            CREATE OR REPLACE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF nextval('completions') <= 3 THEN RAISE SQLSTATE '{code}'; END IF;
                    RETURN NEW;
                END $$;
            CREATE TRIGGER collides BEFORE UPDATE ON idempotency_keys FOR EACH ROW
                WHEN (NEW.status = 'completed') EXECUTE FUNCTION collide()"
        ))
        .await;
}

pub(in crate::cases) async fn c9_a_transactional_completion_that_collides_is_a_conflict_and_undoes_the_body(
    site: &Site,
) {
    let stage = colliding(site, "40001").await;
    for (id, code) in [("x", "40001"), ("y", "40P01")] {
        collides(&stage, code).await;
        for _ in 0..3 {
            let mut tx = stage.begin().await;
            put::<Postgres>(&mut tx, format!("caller {id}")).await.expect("a row");
            let error = refused(ErrorKind::TransactionConflict, job(&stage.w, &mut tx, id)).await.idem();
            assert!(error.is_retryable());
            tx.rollback().await.expect("a rollback");
            stage.lacks(&format!("c9-inside:{id}"), id).await;
        }
        let mut tx = stage.begin().await;
        executed(job(&stage.w, &mut tx, id)).await;
        tx.commit().await.expect("a commit");
        stage.holds(&format!("c9-inside:{id}"), id).await;
        assert_eq!((stage.w.effects(id), stage.rows(format!("caller {id}")).await), (4, 0));
    }
}

/// A caller that commits all the same commits its own rows, and never the job's without its key.
pub(in crate::cases) async fn c9_a_transactional_conflict_that_is_ignored_commits_no_half(site: &Site) {
    let stage = colliding(site, "40001").await;
    let mut tx = stage.begin().await;
    put::<Postgres>(&mut tx, "caller").await.expect("a row");
    refused(ErrorKind::TransactionConflict, job(&stage.w, &mut tx, "x")).await;
    tx.commit().await.expect("a commit");
    stage.lacks("c9-inside:x", "x").await;
    assert_eq!(stage.rows("caller").await, 1);
}
