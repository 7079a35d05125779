//! Phases beside each other, in loops, in each other, around jobs, and outside of any.

use std::time::{Duration, Instant};

use idem_runtime::{Error, ErrorKind, idempotent, phase, record::Status};

use crate::cases::{
    call::{Fault, executed, failed, replayed},
    gate::Gate,
    site::{Site, Worker},
};

#[idempotent(key = "beside:<id>", on_stale = "retry", idem = w.idem)]
async fn beside(w: &Worker, id: &str, gates: &[Gate; 2], works: bool) -> Result<(u32, u32), Fault> {
    tokio::try_join!(
        async {
            let left: u32 = phase!("left", async {
                w.effect("left");
                gates[0].pass().await;
                Ok(1)
            });
            Ok(left)
        },
        async {
            Ok(phase!("right", on_error = "release", async {
                w.effect("right");
                gates[1].pass().await;
                if works { Ok(2_u32) } else { Err(Fault::own("not this time")) }
            }))
        }
    )
}

pub(crate) async fn phases_run_beside_each_other(site: &Site) {
    let w = site.worker().await;
    let gates = [Gate::new(), Gate::new()];
    let meet = async |works: bool, both: bool| {
        let job = tokio::spawn({
            let (w, gates) = (w.clone(), gates.clone());
            async move { beside(&w, "1", &gates, works).await }
        });
        if both {
            gates[0].arrived().await;
        }
        gates[1].arrived().await;
        // Both are inside.
        if both {
            gates[0].open();
            w.row_that_is("beside:1/left", &Status::Completed).await;
        }
        gates[1].open();
        job.await.expect("a job that ends")
    };
    assert!(matches!(meet(false, true).await, Err(Fault::Own(_))));
    assert_eq!(meet(true, false).await.expect("both"), (1, 2));
    assert_eq!((site.effects("left"), site.effects("right")), (1, 2));
}

#[idempotent(key = "lines:<id>", on_stale = "retry", idem = w.idem)]
async fn lines(w: &Worker, id: &str, lines: &[&str], fails_at: &str) -> Result<Vec<String>, Fault> {
    let mut done = Vec::new();
    for line in lines {
        done.push(phase!("line", each = <line>, on_error = "release", async {
            w.effect(line);
            if *line == fails_at { Err(Fault::own("not this time")) } else { Ok((*line).to_owned()) }
        }));
    }
    Ok(done)
}

pub(crate) async fn a_phase_for_each_element_runs_once_for_each(site: &Site) {
    let w = site.worker().await;
    failed(lines(&w, "1", &["x", "y/z", "v"], "y/z")).await;
    // The elements come in another order, and one more.
    assert_eq!(executed(lines(&w, "1", &["v", "y/z", "x", "new"], "")).await, ["v", "y/z", "x", "new"]);
    assert_eq!(["x", "y/z", "v", "new"].map(|line| site.effects(line)), [1, 2, 1, 1]);
    let row = w.row("lines:1").await;
    let mut names: Vec<_> = row.phases.iter().filter_map(|phase| phase.phase_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["line:new", "line:v", "line:x", "line:y%2Fz"]);
    let error = refused_inside(lines(&w, "2", &["x", "x"], "")).await;
    assert!(
        matches!(&error, Error::PhaseRepeated { key, .. } if key.as_str() == "lines:2/line:x"),
        "{error:?}"
    );
    let error = refused_inside(lines(&w, "3", &[""], "")).await;
    assert!(matches!(error, Error::InvalidKey { .. }), "{error:?}");
}

/// The error with which a phase was refused: its job hands it on.
async fn refused_inside<T: std::fmt::Debug>(call: impl Future<Output = Result<T, Fault>>) -> Error {
    failed(call).await.idem()
}

#[idempotent(key = "rounds:<id>", on_stale = "retry", idem = w.idem)]
async fn rounds(w: &Worker, id: &str, rounds: u32) -> Result<(), Fault> {
    for _ in 0..rounds {
        phase!("round", async {
            w.effect("round");
            Ok(())
        });
    }
    Ok(())
}

pub(crate) async fn a_second_round_without_its_element_is_refused(site: &Site) {
    let w = site.worker().await;
    let error = refused_inside(rounds(&w, "1", 2)).await;
    assert!(
        matches!(&error, Error::PhaseRepeated { key, .. } if key.as_str() == "rounds:1/round"),
        "{error:?}"
    );
    assert!(!error.is_retryable() && error.to_string().contains("each = <…>"));
    // A later execution may enter it again, and finds it done.
    executed(rounds(&w, "1", 1)).await;
    assert_eq!(site.effects("round"), 1);
}

#[idempotent(key = "deep:<id>", on_stale = "retry", idem = w.idem)]
async fn deep(w: &Worker, id: &str, works: bool) -> Result<u32, Fault> {
    let outer: u32 = phase!("outer", on_error = "release", async {
        let inner: u32 = phase!("inner", async {
            w.effect("inner");
            Ok(20)
        });
        w.effect("outer");
        if works { Ok(inner * 2) } else { Err(Fault::own("not this time")) }
    });
    Ok(outer + 2)
}

pub(crate) async fn a_phase_in_a_phase_has_a_key_below_it(site: &Site) {
    let w = site.worker().await;
    failed(deep(&w, "1", false)).await;
    assert_eq!(executed(deep(&w, "1", true)).await, 42);
    assert_eq!((site.effects("inner"), site.effects("outer")), (1, 2));
    let inner = w.row("deep:1/outer/inner").await;
    assert_eq!((&inner.status, inner.template.as_deref()), (&Status::Completed, Some("deep:<>/outer/inner")));
    let outer = w.row("deep:1/outer").await;
    assert_eq!(outer.phases.len(), 1);
}

#[idempotent(key = "inner-job:<id>", idem = w.idem)]
async fn inner_job(w: &Worker, id: &str) -> Result<u32, Fault> {
    let counted: u32 = phase!("count", async {
        w.effect("inner job");
        Ok(7)
    });
    Ok(counted)
}

#[idempotent(key = "outer-job:<id>", on_stale = "retry", idem = w.idem)]
async fn outer_job(w: &Worker, id: &str, works: bool) -> Result<u32, Fault> {
    let inner = phase!("inner", on_error = "release", async {
        let inner = inner_job(w, id).await?;
        if works { Ok(inner) } else { Err(Fault::own("not this time")) }
    });
    Ok(inner)
}

pub(crate) async fn a_job_in_a_phase_is_a_job_of_its_own(site: &Site) {
    let w = site.worker().await;
    failed(outer_job(&w, "1", false)).await;
    assert_eq!(executed(outer_job(&w, "1", true)).await, 7);
    assert_eq!(replayed(inner_job(&w, "1")).await, 7);
    assert_eq!(site.effects("inner job"), 1);
    assert_eq!(w.row("inner-job:1/count").await.status, Status::Completed);
}

#[idempotent(key = "again-phase:<id>", on_stale = "retry", on_busy = "wait", wait_for = "30s", idem = w.idem)]
async fn itself(w: &Worker, id: &str) -> Result<u32, Fault> {
    let began = Instant::now();
    let met = phase!("self", on_error = "release", async {
        match Box::pin(itself(w, id)).await {
            Err(Fault::Idem(error)) => Ok(error.kind() == ErrorKind::Reentered),
            _ => Ok(false),
        }
    });
    assert!(met && began.elapsed() < Duration::from_secs(20));
    Ok(1)
}

pub(crate) async fn a_job_is_not_entered_from_its_own_phase(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(itself(&w, "1")).await, 1);
}

async fn charge(w: &Worker) -> Result<u32, Fault> {
    Ok(phase!("charge", async {
        w.effect("charge");
        Ok(1)
    }))
}

#[idempotent(key = "helped:<id>", idem = w.idem)]
async fn helped(w: &Worker, id: &str, beside: bool) -> Result<u32, Fault> {
    if beside {
        let w = w.clone();
        return tokio::spawn(async move { charge(&w).await }).await.expect("no panic");
    }
    charge(w).await
}

pub(crate) async fn a_phase_outside_of_a_job_is_refused(site: &Site) {
    let w = site.worker().await;
    let Err(Fault::Idem(error)) = charge(&w).await else { panic!("there is no job") };
    assert_eq!(error.kind(), ErrorKind::OutsideJob);
    assert!(error.to_string().contains("`phase!` was called outside of an idempotent job"), "{error}");
    let error = refused_inside(helped(&w, "1", true)).await;
    assert_eq!(error.kind(), ErrorKind::OutsideJob, "a task of its own is outside");
    assert_eq!(executed(helped(&w, "2", false)).await, 1);
    assert_eq!(site.effects("charge"), 1);
}

#[idempotent(key = "unclaimed:<id>", mode = "record_after", idem = w.idem)]
async fn unclaimed(w: &Worker, id: &str) -> Result<u32, Fault> {
    charge(w).await
}

pub(crate) async fn a_phase_of_a_job_that_claims_nothing_is_refused(site: &Site) {
    let w = site.worker().await;
    let error = refused_inside(unclaimed(&w, "1")).await;
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("is `record_after`"), "{error}");
    assert_eq!(site.effects("charge"), 0);
}
