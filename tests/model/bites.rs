//! The protocol with one rule broken: the checker finds what that leads to, so the invariants are known to bite.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    holds::BOUND,
    job,
    life::Flaw,
    mutant::Mutant,
    protocol::{NEVER_WEDGED, Protocol},
    state::Bound,
};

/// Looks for a state that breaks the invariant.
fn finds(mutant: Mutant, invariant: &'static str, protocol: Protocol) {
    let protocol = Protocol { mutant: Some(mutant), ..protocol };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([invariant]));
    let checker = protocol.checker().threads(2).finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(invariant);
    println!("{mutant:?}: found in {} states, by {:?}", checker.unique_state_count(), path.into_actions());
}

#[test]
fn the_checker_finds_a_completion_without_a_fence() {
    let protocol = Protocol::new(&[&job::RETRY], BOUND);
    finds(Mutant::CompletesWithoutFence, Flaw::ZombieWrote.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_heartbeat_without_a_fence() {
    let protocol = Protocol::new(&[&job::RETRY], BOUND);
    finds(Mutant::RenewsWithoutFence, Flaw::ZombieWrote.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_takeover_that_checks_no_version() {
    let protocol = Protocol::new(&[&job::RETRY], BOUND);
    finds(Mutant::TakesOverWithoutVersion, Flaw::CompletionChanged.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_flag_from_an_old_snapshot() {
    let watched = Bound { watches: 1, ..BOUND };
    let protocol = Protocol::new(&[&job::ALERT], watched);
    finds(Mutant::FlagsFromAnOldSnapshot, Flaw::CompletionChanged.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_hold_that_leaves_the_fence_as_it_is() {
    let protocol = Protocol::new(&[&job::RETRY], Bound { losses: 1, ..BOUND });
    finds(Mutant::HoldsWithTheSameFence, Flaw::ZombieWrote.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_fence_that_is_the_clock_alone() {
    let protocol = Protocol::new(&[&job::RETRY], BOUND);
    finds(Mutant::FencesByTheClockAlone, Flaw::FenceShared.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_purge_that_forgets_the_fences() {
    let purged = Bound { ticks: 2, backs: 1, purges: true, ..BOUND };
    let protocol = Protocol::new(&[&job::RETRY_TTL], purged);
    finds(Mutant::PurgesWithTheFences, Flaw::FenceShared.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_floor_that_is_the_last_rows() {
    let purged = Bound { ticks: 2, backs: 1, purges: true, beats: false, ..BOUND };
    let protocol =
        Protocol { keys: 2, only_the_dead_lapse: true, ..Protocol::new(&[&job::RETRY_TTL], purged) };
    finds(Mutant::FloorsByTheLastRow, Flaw::FenceShared.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_deploy_that_frees_a_claim_of_policy_alert() {
    let protocol = || Protocol::new(&[&job::ALERT, &job::RETRY], BOUND);
    finds(Mutant::TrustsTheCallersPolicy, Flaw::AlertTakenOver.invariant(), protocol());
}

#[test]
fn the_checker_finds_a_claim_that_is_never_stale() {
    let protocol = Protocol::new(&[&job::ALERT], BOUND);
    finds(Mutant::NeverFindsAClaimStale, NEVER_WEDGED, protocol);
}

#[test]
fn the_checker_finds_a_busy_key_that_is_acknowledged() {
    let protocol = Protocol::new(&[&job::ALERT], BOUND);
    finds(Mutant::AcknowledgesABusyKey, Flaw::SilentSuccess.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_second_record_that_replaces_the_first() {
    let protocol = Protocol::new(&[&job::AFTER], BOUND);
    finds(Mutant::RecordsOverACompletion, Flaw::CompletionChanged.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_record_before_the_effect() {
    let protocol = Protocol::new(&[&job::AFTER], BOUND);
    finds(Mutant::RecordsBefore, Flaw::SilentSuccess.invariant(), protocol);
}

#[test]
fn the_checker_finds_a_probe_that_asks_before_it_claims() {
    let dead = Bound { ticks: 2, ..BOUND };
    let protocol = Protocol { only_the_dead_lapse: true, ..Protocol::new(&[&job::PROBE], dead) };
    finds(Mutant::AsksBeforeItClaims, Flaw::EffectDespiteAnswer.invariant(), protocol);
}
