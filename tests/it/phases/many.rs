//! Jobs with a great many phases, and leases that outlast the worker they were meant for.

use idem_runtime::{Resolution, Resolved, idempotent, phase};
use idem_tests::Backend;

use super::failure::reviewed;
use crate::cases::{
    call::Fault,
    gate::Gate,
    site::{Site, Worker},
};

/// Puts the rows of so many finished jobs into the table, or those of so many phases of each.
async fn put(site: &Site, job: &str, jobs: u32, phases: Option<u32>, expires: &str) {
    let mut connection = site.connection().await;
    let (key, rounds) = match phases {
        Some(phases) => (format!("'{job}:' || n || '/line:' || m"), phases),
        None => (format!("'{job}:' || n"), 1),
    };
    let (counted, numbers) = if site.backend() == Backend::Postgres {
        let numbers = format!("generate_series(1, {jobs}) AS a (n), generate_series(1, {rounds}) AS b (m)");
        (String::new(), numbers)
    } else {
        let up_to = |name: &str, n: &str, most: u32| {
            format!("{name} ({n}) AS (SELECT 1 UNION ALL SELECT {n} + 1 FROM {name} WHERE {n} < {most})")
        };
        let counted = format!("WITH RECURSIVE {}, {}", up_to("a", "n", jobs), up_to("b", "m", rounds));
        (counted, "a, b".to_owned())
    };
    if site.backend() == Backend::Mysql {
        // MySQL's word for how far it counts, and MariaDB's: each knows its own.
        for limit in ["cte_max_recursion_depth", "max_recursive_iterations"] {
            let _ = connection.try_execute(&format!("SET SESSION {limit} = 10000000")).await;
        }
    }
    let rows = format!("{counted} SELECT {key}, 'completed', 1, {expires} FROM {numbers}");
    connection
        .execute(&format!("INSERT INTO idempotency_keys (\"key\", status, fence, expires_at) {rows}"))
        .await;
}

pub(crate) async fn a_purge_takes_a_great_many_phases_along(site: &Site) {
    let w = site.worker().await;
    put(site, "expired", 20, None, "1").await;
    put(site, "expired", 20, Some(2_000), "NULL").await;
    assert_eq!(w.idem.purge().await.expect("a purge"), 20);
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys").await, 0);
}

#[idempotent(key = "lasting:<id>", stale_after = "1s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn lasting(w: &Worker, id: &str, gate: &Gate) -> Result<u32, Fault> {
    Ok(phase!("charge", stale_after = "10m", async {
        w.effect(id);
        gate.pass().await;
        Ok(1)
    }))
}

pub(crate) async fn a_person_does_not_wait_for_the_lease_of_a_phase_that_a_successor_found(site: &Site) {
    let w = site.worker().await;
    let gate = Gate::new();
    let mut dead = Box::pin(lasting(&w, "1", &gate));
    gate.stops(&mut dead).await;
    site.end_lease(&w, "lasting:1").await;
    let (key, _) = reviewed(lasting(&w, "1", &gate)).await;
    let row = w.row(&key).await;
    assert!(row.lease_until.is_some_and(|end| end <= row.now), "{row:?}");
    let resolved = w.idem.resolve(key, Resolution::Completed(Some(7.into()))).note("in the books").await;
    assert!(matches!(resolved, Ok(Resolved::Changed { .. })), "{resolved:?}");
    assert_eq!(lasting(&w, "1", &gate).await.expect("what happened"), 7);
    assert_eq!(site.effects("1"), 1);
}

#[idempotent(key = "many:<id>", stale_after = "1s", heartbeat = false, idem = w.idem)]
async fn many(w: &Worker, id: &str, lines: u32, gate: &Gate) -> Result<(), Fault> {
    for line in 0..lines {
        phase!("line", each = <line>, mode = "record_after", async { Ok(()) });
    }
    phase!("settle", async {
        w.effect(id);
        gate.pass().await;
        Ok(())
    });
    Ok(())
}

pub(crate) async fn the_review_of_a_job_names_its_phase_among_a_great_many(site: &Site) {
    const LINES: u32 = 1_100;
    let w = site.worker().await;
    let gate = Gate::new();
    let is_memory = site.backend() == Backend::Memory;
    let mut dead = Box::pin(many(&w, "1", if is_memory { LINES } else { 0 }, &gate));
    gate.stops(&mut dead).await;
    if !is_memory {
        put(site, "many", 1, Some(LINES), "NULL").await;
    }
    site.end_lease(&w, "many:1").await;
    let (_, reason) = reviewed(many(&w, "1", 0, &gate)).await;
    assert!(reason.contains("in its phase `settle` (processing)"), "{reason}");
    assert_eq!(w.row("many:1").await.phases.len(), LINES as usize + 1);
}
