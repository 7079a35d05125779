//! A job goes on where it stopped: its phases are found by their names.

use idem_runtime::{Error, idempotent, phase};

use crate::cases::{
    call::{Fault, executed, executed_sync, failed, replayed},
    site::{Site, Worker},
};

#[idempotent(key = "resume:<id>", on_stale = "retry", idem = w.idem)]
async fn three(w: &Worker, id: &str, works: bool) -> Result<Vec<String>, Fault> {
    let a = phase!("a", async {
        w.effect("a");
        Ok("A".to_owned())
    });
    let b = phase!("b", on_error = "release", async {
        w.effect("b");
        if works { Ok(a.clone() + "B") } else { Err(Fault::own("not this time")) }
    });
    let c = phase!("c", mode = "record_after", async {
        w.effect("c");
        Ok(format!("{b}C"))
    });
    Ok(vec![a, b, c])
}

pub(crate) async fn a_retried_job_goes_on_at_the_first_unfinished_phase(site: &Site) {
    let w = site.worker().await;
    failed(three(&w, "1", false)).await;
    assert_eq!(["a", "b", "c"].map(|phase| site.effects(phase)), [1, 1, 0]);
    // Somewhere else, and with what the first run had found out.
    let heir = site.worker().await;
    assert_eq!(executed(three(&heir, "1", true)).await, ["A", "AB", "ABC"]);
    assert_eq!(["a", "b", "c"].map(|phase| site.effects(phase)), [1, 2, 1]);
}

pub(crate) async fn a_finished_job_replays_and_enters_no_phase(site: &Site) {
    let w = site.worker().await;
    let first = executed(three(&w, "1", true)).await;
    assert_eq!(replayed(three(&w, "1", true)).await, first);
    assert_eq!(["a", "b", "c"].map(|phase| site.effects(phase)), [1, 1, 1]);
}

/// A job as it stands after a deploy: its phases in another order, one more and one less.
#[idempotent(key = "resume:<id>", on_stale = "retry", allow_overlap(three), idem = w.idem)]
async fn deployed(w: &Worker, id: &str) -> Result<Vec<String>, Fault> {
    let added = phase!("added", async {
        w.effect("added");
        Ok("+".to_owned())
    });
    let c = phase!("c", mode = "record_after", async {
        w.effect("c");
        Ok("c".to_owned())
    });
    let a = phase!("a", async {
        w.effect("a");
        Ok("again".to_owned())
    });
    Ok(vec![added, c, a])
}

pub(crate) async fn phases_are_found_by_name_whatever_a_deploy_does_to_their_order(site: &Site) {
    let w = site.worker().await;
    failed(three(&w, "1", false)).await;
    assert_eq!(executed(deployed(&w, "1")).await, ["+", "c", "A"]);
    assert_eq!(["a", "b", "c", "added"].map(|phase| site.effects(phase)), [1, 1, 1, 1]);
}

#[idempotent(key = "resume:<id>", on_stale = "retry", allow_overlap(three, deployed, retyped), idem = w.idem)]
async fn renamed(w: &Worker, id: &str) -> Result<String, Fault> {
    Ok(phase!("alpha", async {
        w.effect("a");
        Ok("A".to_owned())
    }))
}

pub(crate) async fn a_renamed_phase_runs_again(site: &Site) {
    let w = site.worker().await;
    failed(three(&w, "1", false)).await;
    assert_eq!(executed(renamed(&w, "1")).await, "A");
    assert_eq!(site.effects("a"), 2);
}

#[idempotent(key = "resume:<id>", on_stale = "retry", allow_overlap(three, deployed, renamed), idem = w.idem)]
async fn retyped(w: &Worker, id: &str) -> Result<u32, Fault> {
    let number: u32 = phase!("a", async {
        w.effect("a");
        Ok(7)
    });
    Ok(number)
}

pub(crate) async fn a_phase_whose_type_changed_is_not_run_again(site: &Site) {
    let w = site.worker().await;
    failed(three(&w, "1", false)).await;
    let Err(Fault::Idem(Error::ReplayUnreadable { key, wanted, .. })) = retyped(&w, "1").await else {
        panic!("what was stored is no number")
    };
    assert_eq!((key.as_str(), wanted), ("resume:1/a", "u32"));
    assert_eq!(site.effects("a"), 1);
    assert_eq!(executed(three(&w, "1", true)).await, ["A", "AB", "ABC"]);
}

#[idempotent(key = "resume-sync:<id>", on_stale = "retry", idem = w.idem)]
fn two(w: &Worker, id: &str, works: bool) -> Result<u32, Fault> {
    let a: u32 = phase!("a", || {
        w.effect("a");
        Ok(40)
    });
    let b = phase!("b", on_stale = "retry", || {
        w.effect("b");
        if works { Ok(2) } else { Err(Fault::own("not this time")) }
    });
    Ok(a + b)
}

pub(crate) async fn a_synchronous_job_goes_on_as_well(site: &Site) {
    let w = site.worker().await;
    assert!(matches!(two(&w, "1", false), Err(Fault::Own(_))));
    assert_eq!(executed_sync(|| two(&w, "1", true)), 42);
    assert_eq!(["a", "b"].map(|phase| site.effects(phase)), [1, 2]);
}

pub(crate) async fn a_phase_with_a_key_too_long_for_a_row_goes_on_as_well(site: &Site) {
    let w = site.worker().await;
    for length in [100, 180, 181, 182, 183, 240, 246, 247, 250, 300] {
        let (id, other) = (format!("{}1", "x".repeat(length)), format!("{}2", "x".repeat(length)));
        failed(three(&w, &id, false)).await;
        failed(three(&w, &other, false)).await;
        let before = site.effects("a");
        assert_eq!(executed(three(&w, &id, true)).await, ["A", "AB", "ABC"]);
        assert_eq!(site.effects("a"), before, "{length}");
        let row = w.row(&format!("resume:{id}")).await;
        let mut names: Vec<_> = row.phases.iter().filter_map(|phase| phase.phase_name()).collect();
        // SQLite's births count in seconds.
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"], "{length}");
        assert!(row.phases.iter().all(|phase| phase.key.len() <= 255));
    }
}
