//! The protocol of alerts as it is.

use std::time::Instant;

use stateright::{Checker, Model};

use super::{Bound, Telling};

/// Explores all of a configuration.
fn holds(name: &str, bound: Bound) {
    let began = Instant::now();
    let telling = Telling { watchers: 3, bound, mutant: None };
    let checker = telling.checker().threads(2).spawn_bfs().join();
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed(),
    );
    checker.assert_properties();
}

pub(super) const BOUND: Bound = Bound { rounds: 4, deaths: 0, beats: 1, losses: 0, ends: false };

#[test]
fn a_person_is_told_once_if_no_teller_dies() {
    holds("telling, nobody dies", Bound { losses: 1, ends: true, ..BOUND });
}

#[test]
fn a_person_is_told_if_a_watcher_lives_and_again_only_for_a_teller_that_died() {
    holds("telling, two die", Bound { rounds: 6, deaths: 2, losses: 1, beats: 0, ..BOUND });
    holds("telling, one dies, heartbeats", Bound { rounds: 5, deaths: 1, ..BOUND });
}
