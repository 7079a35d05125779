//! Jobs of several phases.
//!
//! Each case plays on every database that it speaks of, under its own name:
//! `phases::postgres::a_retried_job_goes_on_at_the_first_unfinished_phase`.

mod counts;
mod deaths;
mod failure;
mod inside;
mod life;
mod many;
mod nest;
mod resume;
mod stale;
mod transactional;
mod zombie;

use idem_tests::Backend;

use crate::cases::site::Site;

/// The cases, by what they ask of a back end.
macro_rules! phases {
    (everywhere $everywhere:tt databases $databases:tt) => {
        on!(memory: Memory, $everywhere);
        on!(sqlite: Sqlite, $everywhere $databases);
        on!(postgres: Postgres, $everywhere $databases);
        on!(mysql: Mysql, $everywhere $databases);
    };
}

macro_rules! on {
    ($name:ident: $backend:ident, $({ $($file:ident { $($case:ident)+ })* })+) => {
        mod $name {
            $($($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::Site::plays(super::Backend::$backend, super::$file::$case).await;
                }
            )+)*)+
        }
    };
}

phases! {
    everywhere {
        resume {
            a_retried_job_goes_on_at_the_first_unfinished_phase
            phases_are_found_by_name_whatever_a_deploy_does_to_their_order
            a_renamed_phase_runs_again
            a_phase_whose_type_changed_is_not_run_again
            a_finished_job_replays_and_enters_no_phase
            a_synchronous_job_goes_on_as_well
            a_phase_with_a_key_too_long_for_a_row_goes_on_as_well
        }
        inside {
            a_phase_knows_its_key_and_the_keys_that_come_of_it
            a_look_at_a_job_shows_its_phases
            a_finished_phase_renews_the_lease_of_its_job
            each_ending_of_a_phase_is_one_event_under_its_jobs_name_and_its_own
            a_shutdown_waits_for_the_phases_of_a_running_job
        }
        failure {
            an_error_that_holds_leaves_a_phase_to_a_person
            an_error_that_releases_lets_a_phase_run_again
            an_error_before_the_mark_releases_and_after_it_holds
            an_error_that_is_recorded_is_final_for_the_phase
            a_panic_and_a_drop_leave_a_phase_as_an_error_that_holds
        }
        stale {
            a_phase_whose_worker_died_needs_review_by_its_own_name
            a_person_says_that_a_phase_happened_and_the_job_goes_on_behind_it
            a_person_says_that_a_phase_did_not_happen_and_it_runs_again
            the_review_of_a_job_names_the_phase_that_it_was_in
            a_probe_is_asked_about_the_phase_whose_worker_died
            a_phase_that_is_run_again_has_no_claim_to_go_stale
        }
        zombie {
            a_job_that_was_taken_over_completes_no_phase
            a_job_that_was_taken_over_enters_no_phase
            a_job_that_was_taken_over_leaves_its_heirs_phases_alone
            a_job_that_a_person_freed_by_force_completes_no_phase
            a_phase_that_ends_late_counts_while_nobody_took_the_job
        }
        nest {
            phases_run_beside_each_other
            a_phase_for_each_element_runs_once_for_each
            a_second_round_without_its_element_is_refused
            a_phase_in_a_phase_has_a_key_below_it
            a_job_in_a_phase_is_a_job_of_its_own
            a_job_is_not_entered_from_its_own_phase
            a_phase_outside_of_a_job_is_refused
            a_phase_of_a_job_that_claims_nothing_is_refused
        }
        life {
            a_job_past_its_ttl_begins_its_phases_afresh
            a_purged_job_takes_its_phases_along
            a_forgotten_job_takes_its_phases_along
            a_released_job_is_kept_for_its_phases
            a_withdrawn_claim_keeps_a_job_for_its_phases
            phases_that_a_row_left_behind_are_none
        }
        many {
            a_person_does_not_wait_for_the_lease_of_a_phase_that_a_successor_found
            the_review_of_a_job_names_its_phase_among_a_great_many
        }
    }
    databases {
        many {
            a_purge_takes_a_great_many_phases_along
        }
        transactional {
            a_phase_and_its_rows_appear_when_the_caller_commits
            a_phase_that_is_rolled_back_runs_again
            a_job_that_was_taken_over_commits_no_phase
            a_phase_in_a_transaction_waits_for_nobody_who_waits_for_it
            a_phase_says_that_it_waits_for_a_transaction_that_is_still_open
            phases_of_a_transactional_job_join_its_transaction
            a_phase_of_another_mode_is_refused_in_a_transactional_job
            a_phase_of_a_transactional_job_in_another_transaction_is_refused
        }
    }
}
