//! The protocol of phases with one rule broken.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use super::{Mutant, Phased, history::Flaw, holds::BOUND, job, state::Bound};

/// Looks for a state that breaks the invariant.
fn finds(mutant: Mutant, flaw: Flaw, phased: Phased) {
    let phased = Phased { mutant: Some(mutant), ..phased };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([flaw.invariant()]));
    let checker = phased.checker().threads(2).finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(flaw.invariant());
    println!("{mutant:?}: found in {} states, by {:?}", checker.unique_state_count(), path.into_actions());
}

#[test]
fn the_checker_finds_a_phase_that_is_written_without_its_jobs_claim() {
    finds(Mutant::WritesUnguarded, Flaw::ZombieWrote, Phased::new(job::JOB, BOUND));
}

#[test]
fn the_checker_finds_a_guard_that_asks_for_no_fence() {
    let lossy = Bound { losses: 1, ..BOUND };
    finds(Mutant::GuardsWithoutFence, Flaw::ZombieWrote, Phased::new(job::JOB, lossy));
}

#[test]
fn the_checker_finds_an_heir_that_waits_for_the_dead() {
    finds(Mutant::WaitsForTheDead, Flaw::FoundBusy, Phased::new(job::JOB, BOUND));
}

#[test]
fn the_checker_finds_a_zombie_that_takes_its_heir_for_dead() {
    finds(Mutant::TakesAnyForADead, Flaw::FlaggedAlive, Phased::new(job::JOB, BOUND));
}

#[test]
fn the_checker_finds_a_phase_of_a_former_life_whose_birth_nobody_compares() {
    let expiring = Bound { ticks: 2, ..BOUND };
    finds(Mutant::ForgetsTheBirth, Flaw::FormerLife, Phased::new(job::JOB_TTL, expiring));
    let deleted = Bound { deletions: 1, ..BOUND };
    finds(Mutant::ForgetsTheBirth, Flaw::FormerLife, Phased::new(job::JOB, deleted));
}

#[test]
fn the_checker_finds_a_phase_of_a_former_life_in_the_first_run_of_the_next() {
    finds(Mutant::ForgetsWhoBegan, Flaw::FormerLife, Phased::new(job::JOB_TTL, BOUND));
}

#[test]
fn the_checker_finds_a_released_job_that_is_purged_with_phases_that_count() {
    let purged = Bound { purges: true, ..BOUND };
    finds(Mutant::ReleasesWithoutPhases, Flaw::SecondCharge, Phased::new(job::JOB, purged));
}

#[test]
fn the_checker_finds_phases_that_an_heir_overlooks() {
    let purged = Bound { ticks: 2, purges: true, ..BOUND };
    let phased = Phased { shows: false, ..Phased::new(job::JOB, purged) };
    finds(Mutant::OverlooksPhases, Flaw::SecondCharge, phased);
}

#[test]
fn the_checker_finds_a_phase_that_an_heir_enters_without_a_look() {
    finds(Mutant::EntersUnseen, Flaw::RunAgain, Phased::new(job::JOB, BOUND));
}

#[test]
fn the_checker_finds_a_job_that_passes_by_a_phase_under_review() {
    finds(Mutant::PassesByAReview, Flaw::Unfounded, Phased::new(job::JOB, BOUND));
}

#[test]
fn the_checker_finds_a_phase_that_is_flagged_from_an_old_snapshot() {
    let watched = Bound { deliveries: 1, watches: 1, ticks: 2, ..BOUND };
    finds(Mutant::FlagsFromAnOldSnapshot, Flaw::CompletionChanged, Phased::new(job::JOB, watched));
}
