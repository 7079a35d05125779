//! The protocol of alerts with one rule broken.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use super::{AT_LEAST_ONCE, Bound, Mutant, ONCE, TOLD_IF_MARKED, Telling, holds::BOUND};

/// Looks for a state that breaks the invariant.
fn finds(mutant: Mutant, invariant: &'static str, bound: Bound) {
    let telling = Telling { watchers: 3, bound, mutant: Some(mutant) };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([invariant]));
    let checker = telling.checker().threads(2).finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(invariant);
    println!("{mutant:?}: found in {} states, by {:?}", checker.unique_state_count(), path.into_actions());
}

#[test]
fn the_checker_finds_two_who_flag_and_both_ring() {
    finds(Mutant::RingsWhereItIsFlagged, ONCE, BOUND);
}

#[test]
fn the_checker_finds_two_who_lose_patience_and_both_ring() {
    finds(Mutant::RetellsUnasked, ONCE, Bound { deaths: 1, ..BOUND });
}

#[test]
fn the_checker_finds_a_mark_before_the_hook() {
    finds(Mutant::MarksFirst, TOLD_IF_MARKED, Bound { deaths: 1, ..BOUND });
}

#[test]
fn the_checker_finds_a_mark_that_is_given_up_for_a_heartbeat() {
    finds(Mutant::MarksOnce, ONCE, BOUND);
}

#[test]
fn the_checker_finds_a_teller_that_is_silent_while_its_hook_runs() {
    finds(Mutant::RingsInSilence, ONCE, BOUND);
}

#[test]
fn the_checker_finds_a_mark_that_leaves_the_version_as_it_is() {
    finds(Mutant::MarksInPlace, ONCE, BOUND);
}

#[test]
fn the_checker_finds_that_nobody_tells_again() {
    finds(Mutant::NeverRetells, AT_LEAST_ONCE, Bound { deaths: 1, ..BOUND });
}
