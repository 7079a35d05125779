//! The protocol as it is: in each configuration every invariant holds in every state.

use std::time::Instant;

use stateright::{Checker, Model};

use crate::{job, protocol::Protocol, sight::Sight, state::Bound};

/// Explores all of a configuration.
fn holds(name: &str, protocol: Protocol) {
    let began = Instant::now();
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed(),
    );
    checker.assert_properties();
}

pub(crate) const BOUND: Bound =
    Bound { deliveries: 3, ticks: 1, backs: 0, losses: 0, deeds: 0, watches: 0, purges: false, beats: true };

#[test]
fn under_alert_a_key_has_at_most_one_effect() {
    let sights = &[Sight::Completed, Sight::InReview];
    let alert = |bound| Protocol { sights, ..Protocol::new(&[&job::ALERT], bound) };
    holds("alert, two answers lost", alert(Bound { losses: 2, beats: false, ..BOUND }));
    holds("alert, an answer lost, heartbeats", alert(Bound { losses: 1, ..BOUND }));
    let expiring = Bound { ticks: 2, backs: 1, purges: true, ..BOUND };
    let sights = &[Sight::Completed, Sight::Gone];
    holds("alert with a ttl, purges", Protocol { sights, ..Protocol::new(&[&job::ALERT_TTL], expiring) });
}

#[test]
fn under_alert_people_and_watchers_free_no_key_by_accident() {
    let sights = &[Sight::InReview, Sight::CompletedAfterReview, Sight::Gone, Sight::TwoEffects];
    let alert = |bound| Protocol { sights, ..Protocol::new(&[&job::ALERT], bound) };
    holds("alert, a watcher and a person", alert(Bound { watches: 1, deeds: 1, ..BOUND }));
    let lossy = Bound { deliveries: 2, watches: 1, deeds: 1, losses: 1, beats: false, ..BOUND };
    holds("alert, a watcher, a person and an answer lost", alert(lossy));
}

#[test]
fn by_mark_frees_a_key_only_before_its_effect() {
    let sights = &[Sight::Completed, Sight::InReview];
    holds("by_mark", Protocol { sights, ..Protocol::new(&[&job::BY_MARK], Bound { losses: 1, ..BOUND }) });
}

#[test]
fn under_retry_one_completion_is_accepted() {
    let sights = &[Sight::CompletedByAnHeir, Sight::Zombie, Sight::TwoEffects];
    let retry = |bound| Protocol { sights, ..Protocol::new(&[&job::RETRY], bound) };
    holds("retry, leases end twice", retry(Bound { ticks: 2, ..BOUND }));
    holds("retry, an answer lost", retry(Bound { losses: 1, ..BOUND }));
    holds("retry, a person", retry(Bound { deliveries: 2, deeds: 1, ..BOUND }));
    let once = Protocol {
        sights: &[Sight::CompletedByAnHeir, Sight::InReview],
        ..Protocol::new(&[&job::RETRY_ONCE], Bound { ticks: 2, beats: false, ..BOUND })
    };
    holds("retry, one takeover", once);
}

#[test]
fn across_a_ttl_and_a_purge_fences_grow_whatever_the_clock_does() {
    let sights = &[Sight::Gone, Sight::Zombie];
    let bound = Bound { ticks: 2, backs: 1, purges: true, beats: false, ..BOUND };
    let retry = Protocol { sights, ..Protocol::new(&[&job::RETRY_TTL], bound) };
    holds("retry with a ttl, purges", retry);
    let bound = Bound { ticks: 2, deliveries: 2, ..bound };
    let two = Protocol { sights, keys: 2, ..Protocol::new(&[&job::RETRY_TTL], bound) };
    holds("two keys with a ttl, purges", two);
}

#[test]
fn a_deploy_that_changes_the_policy_frees_nothing() {
    let sights = &[Sight::Completed, Sight::InReview];
    let bound = Bound { beats: false, ..BOUND };
    holds("alert and retry", Protocol { sights, ..Protocol::new(&[&job::ALERT, &job::RETRY], bound) });
    holds("alert and probe", Protocol { sights, ..Protocol::new(&[&job::ALERT, &job::PROBE], bound) });
    let sights = &[Sight::CompletedByAnHeir, Sight::Zombie];
    holds("retry and probe", Protocol { sights, ..Protocol::new(&[&job::RETRY, &job::PROBE], bound) });
}

#[test]
fn a_probe_repeats_no_effect_of_the_dead() {
    let bound = Bound { deliveries: 4, ticks: 3, beats: false, ..BOUND };
    let sights = &[Sight::CompletedByAnHeir, Sight::InReview];
    let probe = Protocol { sights, only_the_dead_lapse: true, ..Protocol::new(&[&job::PROBE], bound) };
    holds("probe, only the dead are taken over", probe);
}

#[test]
fn under_probe_one_completion_is_accepted() {
    let sights = &[Sight::CompletedByAnHeir, Sight::Zombie, Sight::TwoEffects];
    let probe = |bound| Protocol { sights, ..Protocol::new(&[&job::PROBE], bound) };
    holds("probe, leases end twice", probe(Bound { ticks: 2, ..BOUND }));
    holds("probe, an answer lost", probe(Bound { losses: 1, ..BOUND }));
}

#[test]
fn a_recorded_effect_happened() {
    let sights = &[Sight::Completed, Sight::Gone];
    let bound = Bound { losses: 1, purges: true, ..BOUND };
    holds("record_after", Protocol { sights, ..Protocol::new(&[&job::AFTER], bound) });
    let bound = Bound { deeds: 1, ..BOUND };
    holds("record_after, a person", Protocol { sights, ..Protocol::new(&[&job::AFTER], bound) });
}
