//! The protocol as it is: in each configuration every invariant holds in every state.

use std::time::Instant;

use stateright::{Checker, Model};

use crate::{
    job,
    protocol::Protocol,
    state::Bound,
};

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
fn trial() {
    let b = BOUND;
    let p = |jobs: &[&'static idem_runtime::Job], bound| Protocol::new(jobs, bound);
    holds("alert lost", p(&[&job::ALERT], Bound { losses: 1, ..b }));
    holds("alert lost 2", p(&[&job::ALERT], Bound { losses: 2,beats:false, ..b }));
    holds("alert people", p(&[&job::ALERT], Bound { watches: 1, deeds: 1, ..b }));
    holds("alert people lost D2", p(&[&job::ALERT], Bound { watches: 1, deeds: 1, losses: 1, deliveries: 2, ..b }));
    holds("alert ttl", p(&[&job::ALERT_TTL], Bound { ticks: 2, backs: 1, purges: true, ..b }));
    holds("by mark", p(&[&job::BY_MARK], Bound { losses: 1, ..b }));
    holds("retry", p(&[&job::RETRY], Bound { ticks: 2, ..b }));
    holds("retry lost", p(&[&job::RETRY], Bound { ticks: 1, losses: 1, ..b }));
    holds("retry ttl", p(&[&job::RETRY_TTL], Bound { ticks: 2, backs: 1, purges: true, beats: false, ..b }));
    holds("retry people D2", p(&[&job::RETRY], Bound { ticks: 1, deeds: 1, deliveries: 2, ..b }));
    holds("retry once", p(&[&job::RETRY_ONCE], Bound { ticks: 2, beats: false, ..b }));
    holds("mix alert retry", p(&[&job::ALERT, &job::RETRY], Bound { ticks: 1, beats: false, ..b }));
    holds("probe dead", Protocol { only_the_dead_lapse: true, ..p(&[&job::PROBE], Bound { ticks: 2, beats: false, deliveries: 3, ..b })});
    holds("probe", p(&[&job::PROBE], Bound { ticks: 2, ..b }));
    holds("probe lost", p(&[&job::PROBE], Bound { ticks: 1, losses: 1, ..b }));
    holds("after", p(&[&job::AFTER], Bound { ticks: 1, losses: 1, purges: true, ..b }));
    holds("two keys", Protocol { keys: 2, ..p(&[&job::RETRY_TTL], Bound { ticks: 1, backs: 1, purges: true, beats: false, deliveries: 2, ..b })});
}
