//! The protocol of phases as it is.

use std::time::Instant;

use stateright::{Checker, Model};

use super::{Phased, job, sight::Sight, state::Bound};
use crate::person::Deed;

/// Explores all of a configuration.
fn holds(name: &str, phased: Phased) {
    let began = Instant::now();
    let checker = phased.checker().threads(2).spawn_bfs().join();
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed(),
    );
    checker.assert_properties();
}

pub(super) const BOUND: Bound = Bound {
    deliveries: 3,
    ticks: 1,
    losses: 0,
    deeds: 0,
    watches: 0,
    deletions: 0,
    purges: false,
    beats: false,
};

#[test]
fn a_job_that_is_taken_over_charges_once_and_goes_on_where_it_stopped() {
    let sights = &[Sight::CompletedByAnHeir, Sight::Zombie, Sight::InReview, Sight::TwoMails];
    let phased = |bound| Phased { sights, ..Phased::new(job::JOB, bound) };
    holds("phases, leases end twice", phased(Bound { ticks: 2, ..BOUND }));
    holds("phases, an answer lost", phased(Bound { deliveries: 2, losses: 1, ..BOUND }));
    holds("phases, heartbeats", phased(Bound { beats: true, ..BOUND }));
    let retried = Phased { mail: &job::MAIL_RETRY, ..phased(BOUND) };
    holds("phases, one with retry", retried);
}

#[test]
fn people_and_watchers_free_a_phase_or_its_job_but_nothing_by_accident() {
    let sights = &[Sight::InReview, Sight::ChargedAgain, Sight::Gone];
    let bound = Bound { deliveries: 2, deeds: 1, ..BOUND };
    holds("phases, a person", Phased { sights, ..Phased::new(job::JOB, bound) });
    let sights = &[Sight::InReview, Sight::Zombie];
    let bound = Bound { ticks: 2, watches: 1, deliveries: 2, ..BOUND };
    holds("phases, a watcher", Phased { sights, ..Phased::new(job::JOB, bound) });
    let sights = &[Sight::InReview, Sight::EndsLate];
    let bound = Bound { deliveries: 2, deeds: 2, ticks: 0, ..BOUND };
    let alert = Phased { sights, deeds: &[Deed::Retry], ..Phased::new(job::JOB_ALERT, bound) };
    holds("phases under alert, a person twice", alert);
}

#[test]
fn a_new_life_begins_with_no_phase_of_the_last_one() {
    let sights = &[Sight::LeftOver, Sight::Gone, Sight::Zombie];
    let bound = Bound { ticks: 2, purges: true, ..BOUND };
    holds("phases with a ttl, purges", Phased { sights, ..Phased::new(job::JOB_TTL, bound) });
    let bound = Bound { deletions: 1, ..BOUND };
    let sights = &[Sight::LeftOver, Sight::Zombie];
    holds("phases, a row deleted by hand", Phased { sights, ..Phased::new(job::JOB, bound) });
}

#[test]
fn a_job_that_shows_no_phases_keeps_them_all_the_same() {
    let sights = &[Sight::CompletedByAnHeir, Sight::Zombie];
    let bound = Bound { ticks: 2, purges: true, ..BOUND };
    holds("phases unseen, purges", Phased { sights, shows: false, ..Phased::new(job::JOB, bound) });
}
