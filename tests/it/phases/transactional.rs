//! A phase in a transaction: of its own, which its job commits, or that of its job.

use std::time::{Duration, Instant};

use idem_runtime::{Error, ErrorKind, idempotent, phase};
use sqlx::Transaction;
use tokio::time::timeout;

use crate::{
    cases::{
        call::{Fault, executed, failed},
        gate::Gate,
        site::Site,
    },
    transact::{
        dialect::Dialect,
        stage::{Stage, plays, put},
    },
};

#[idempotent(key = "tx:<id>", stale_after = "2s", heartbeat = false, on_stale = "retry", idem = stage.w.idem)]
async fn reserves<DB: Dialect>(
    stage: &Stage<'_, DB>,
    id: &str,
    commits: bool,
    gate: Option<&Gate>,
) -> Result<u32, Fault> {
    let mut own = stage.begin().await;
    let tx = &mut own;
    let reserved: u32 = phase!("reserve", mode = "transactional", tx = tx, async {
        put::<DB>(&mut **tx, id).await.map_err(|error| Fault::own(&error.to_string()))?;
        if let Some(gate) = gate {
            gate.pass().await;
        }
        Ok(1)
    });
    if commits {
        own.commit().await.map_err(|error| Fault::own(&error.to_string()))?;
    } else {
        own.rollback().await.map_err(|error| Fault::own(&error.to_string()))?;
        return Err(Fault::own("rolled back"));
    }
    let charged: u32 = phase!("charge", async {
        stage.w.effect(id);
        Ok(41)
    });
    Ok(reserved + charged)
}

pub(crate) async fn a_phase_and_its_rows_appear_when_the_caller_commits(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        assert_eq!(executed(reserves(stage, "1", true, None)).await, 42);
        stage.holds("tx:1/reserve", "1").await;
        assert_eq!(stage.w.row("tx:1").await.phases.len(), 2);
        // As if the worker had died before the job was completed.
        stage.execute(&format!("UPDATE idempotency_keys SET status = 'processing', lease_until = 1, completed_at = NULL WHERE {} = 'tx:1'", DB::KEY)).await;
        let again = reserves(stage, "1", true, None).await;
        assert_eq!(again.expect("a job that goes on"), 42);
        assert_eq!((stage.rows("1").await, stage.w.effects("1")), (1, 1));
    }
    plays!(site, case);
}

pub(crate) async fn a_phase_that_is_rolled_back_runs_again(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        failed(reserves(stage, "1", false, None)).await;
        stage.lacks("tx:1/reserve", "1").await;
        executed(reserves(stage, "1", true, None)).await;
        stage.holds("tx:1/reserve", "1").await;
    }
    plays!(site, case);
}

pub(crate) async fn a_job_that_was_taken_over_commits_no_phase(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        let (w, gate) = (&stage.w, Gate::new());
        let late = reserves(stage, "1", true, Some(&gate));
        let mut late = Box::pin(late);
        gate.stops(&mut late).await;
        // Where one writer locks the whole database, nobody takes the job over before the transaction ends.
        if DB::BACKEND == idem_tests::Backend::Sqlite {
            gate.open();
            assert_eq!(late.await.expect("nobody took it"), 42);
            return;
        }
        stage.site.end_lease(w, "tx:1").await;
        let fence = w.row("tx:1").await.fence;
        stage
            .execute(&format!(
                "UPDATE idempotency_keys SET fence = {}, owner = 'another' WHERE {} = 'tx:1'",
                fence + 1,
                DB::KEY
            ))
            .await;
        gate.open();
        let lost = late.await;
        assert!(matches!(&lost, Err(Fault::Idem(Error::ClaimLost { .. }))), "{lost:?}");
        stage.lacks("tx:1/reserve", "1").await;
    }
    plays!(site, case);
}

#[idempotent(key = "tx-crowd:<id>", stale_after = "2s", heartbeat = false, on_stale = "retry", idem = stage.w.idem)]
async fn besieged<DB: Dialect>(stage: &Stage<'_, DB>, id: &str, gate: &Gate) -> Result<u32, Fault> {
    let mut own = stage.begin().await;
    let tx = &mut own;
    gate.pass().await;
    let reserved = phase!("reserve", mode = "transactional", tx = tx, async {
        put::<DB>(&mut **tx, id).await.map_err(|error| Fault::own(&error.to_string()))?;
        Ok(1)
    });
    own.commit().await.map_err(|error| Fault::own(&error.to_string()))?;
    Ok(reserved)
}

pub(crate) async fn a_phase_in_a_transaction_waits_for_nobody_who_waits_for_it(site: &Site) {
    /// How long the phase takes while other jobs, and then its own, ask for claims. On SQLite they are not written, and
    /// are refused after a while each, until the transaction ends.
    async fn besieged_for<DB: Dialect>(stage: &Stage<'_, DB>, id: &str) -> Duration {
        let gate = Gate::new();
        let mut holder = Box::pin(besieged(stage, id, &gate));
        gate.stops(&mut holder).await;
        let keys: Vec<_> = (0..20).map(|n| format!("{id}-{n}")).chain([id.to_owned()]).collect();
        let mut others: Vec<_> = keys.iter().map(|key| Box::pin(besieged(stage, key, &gate))).collect();
        for other in &mut others {
            let _ = timeout(Duration::ZERO, other).await;
        }
        let begun = Instant::now();
        gate.open();
        assert_eq!(executed(holder).await, 1);
        stage.holds(&format!("tx-crowd:{id}/reserve"), id).await;
        begun.elapsed()
    }
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        let mut shortest = Duration::MAX; // the machine may be slow at times
        for id in ["1", "2", "3"] {
            shortest = shortest.min(besieged_for(stage, id).await);
        }
        assert!(shortest < Duration::from_millis(200), "{shortest:?}");
    }
    plays!(site, case);
}

#[idempotent(key = "tx-open:<id>", on_stale = "retry", idem = stage.w.idem)]
async fn forgets<DB: Dialect>(stage: &Stage<'_, DB>, id: &str) -> Result<u32, Fault> {
    let mut own = stage.begin().await;
    let tx = &mut own;
    phase!("reserve", mode = "transactional", tx = tx, async {
        put::<DB>(&mut **tx, id).await.map_err(|error| Fault::own(&error.to_string()))
    });
    let charged = phase!("charge", async {
        stage.w.effect(id);
        Ok(1)
    });
    drop(own);
    Ok(charged)
}

pub(crate) async fn a_phase_says_that_it_waits_for_a_transaction_that_is_still_open(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        let impatient =
            stage.site.worker_by(|builder| builder.store_timeout(Duration::from_millis(500))).await;
        let stage = Stage { w: impatient, pool: stage.pool.clone(), ..*stage };
        let error = failed(forgets(&stage, "1")).await.idem();
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert!(error.to_string().contains("commit it before the next phase"), "{error}");
        assert_eq!(stage.w.effects("1"), 0);
    }
    plays!(site, case);
}

#[idempotent(key = "tx-whole:<id>", mode = "transactional", idem = stage.w.idem)]
async fn whole<DB: Dialect>(
    stage: &Stage<'_, DB>,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    works: bool,
) -> Result<u32, Fault> {
    let first: u32 = phase!("first", mode = "transactional", tx = tx, async {
        put::<DB>(&mut **tx, "first").await.map_err(|error| Fault::own(&error.to_string()))?;
        Ok(1)
    });
    let second: u32 = phase!("second", mode = "transactional", tx = tx, async {
        put::<DB>(&mut **tx, "second").await.map_err(|error| Fault::own(&error.to_string()))?;
        if works { Ok(2) } else { Err(Fault::own("not this time")) }
    });
    Ok(first + second)
}

pub(crate) async fn phases_of_a_transactional_job_join_its_transaction(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        let mut tx = stage.begin().await;
        failed(whole(stage, &mut tx, "1", false)).await;
        assert_eq!(executed(whole(stage, &mut tx, "1", true)).await, 3);
        tx.commit().await.expect("a commit");
        for name in ["first", "second"] {
            stage.holds(&format!("tx-whole:1/{name}"), name).await;
        }
        let mut tx = stage.begin().await;
        executed(whole(stage, &mut tx, "2", true)).await;
        tx.rollback().await.expect("a rollback");
        stage.lacks("tx-whole:2/first", "nothing").await;
    }
    plays!(site, case);
}

#[idempotent(key = "tx-mixed:<id>", mode = "transactional", idem = stage.w.idem)]
async fn mixed<DB: Dialect>(
    stage: &Stage<'_, DB>,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    elsewhere: bool,
) -> Result<u32, Fault> {
    let _ = tx;
    if elsewhere {
        return beside(stage).await;
    }
    outside(stage).await
}

async fn outside<DB: Dialect>(stage: &Stage<'_, DB>) -> Result<u32, Fault> {
    Ok(phase!("charge", async {
        stage.w.effect("charge");
        Ok(1)
    }))
}

async fn beside<DB: Dialect>(stage: &Stage<'_, DB>) -> Result<u32, Fault> {
    let tx = &mut stage.begin().await;
    Ok(phase!("beside", mode = "transactional", tx = tx, async {
        stage.w.effect("beside");
        Ok(1)
    }))
}

pub(crate) async fn a_phase_of_another_mode_is_refused_in_a_transactional_job(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        let mut tx = stage.begin().await;
        let error = failed(mixed(stage, &mut tx, "1", false)).await.idem();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("its phases join its transaction"), "{error}");
        assert_eq!(stage.w.effects("charge"), 0);
    }
    plays!(site, case);
}

pub(crate) async fn a_phase_of_a_transactional_job_in_another_transaction_is_refused(site: &Site) {
    async fn case<DB: Dialect>(stage: &Stage<'_, DB>) {
        // Where there is one writer at a time, there is no other transaction to be in.
        if DB::BACKEND == idem_tests::Backend::Sqlite {
            return;
        }
        let mut tx = stage.begin().await;
        let error = failed(mixed(stage, &mut tx, "1", true)).await.idem();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("another transaction"), "{error}");
        assert_eq!(stage.w.effects("beside"), 0);
    }
    plays!(site, case);
}
