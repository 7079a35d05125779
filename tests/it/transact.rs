//! Jobs inside their caller's transaction: `mode = "transactional"`.
//!
//! Each case plays on every database that it speaks of, under its own name:
//! `transact::sqlite::rows_and_key_appear_when_the_caller_commits`.

mod behind;
mod cancel;
mod commit;
pub(crate) mod dialect;
mod failure;
mod inside;
mod isolation;
mod jobs;
mod lost;
mod nest;
mod place;
mod rows;
pub(crate) mod stage;
mod together;
mod wait;

use idem_tests::Backend;
use sqlx::{MySql, Postgres, Sqlite};

use self::stage::Stage;
use crate::cases::site::Site;

/// The cases, by the databases that they speak of.
macro_rules! transact {
    (databases $databases:tt servers $servers:tt sqlite $sqlite:tt postgres $postgres:tt mysql $mysql:tt) => {
        on!(sqlite: Sqlite on Sqlite, $databases $sqlite);
        on!(postgres: Postgres on Postgres, $databases $servers $postgres);
        on!(mysql: MySql on Mysql, $databases $servers $mysql);
    };
}

macro_rules! on {
    ($name:ident: $database:ident on $backend:ident, $({ $($file:ident { $($case:ident)+ })* })+) => {
        mod $name {
            $($($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let case = async |site: &super::Site| {
                        super::$file::$case(&super::Stage::<super::$database>::on(site).await).await;
                    };
                    super::Site::plays(super::Backend::$backend, case).await;
                }
            )+)*)+
        }
    };
}

transact! {
    databases {
        together {
            rows_and_key_appear_when_the_caller_commits
            nothing_stays_when_the_caller_rolls_back
            nothing_stays_when_the_transaction_is_dropped
            nothing_stays_when_the_connection_is_dropped
            many_jobs_of_one_transaction_appear_together
            nothing_stays_of_a_process_that_dies_in_the_body
            nothing_stays_of_a_process_that_dies_before_the_commit
            a_process_that_dies_after_the_commit_leaves_a_replay
        }
        cancel {
            a_call_that_is_dropped_anywhere_leaves_all_or_nothing
            a_failing_call_that_is_dropped_anywhere_leaves_all_or_nothing
            a_nesting_call_that_is_dropped_anywhere_leaves_all_or_nothing
            a_repeat_that_is_dropped_anywhere_leaves_the_transaction_whole
            a_body_that_is_dropped_leaves_the_callers_own_rows
            a_body_that_drops_its_own_transaction_half_way_undoes_no_more_than_itself
        }
        failure {
            an_error_undoes_the_jobs_rows_and_leaves_the_callers
            a_recorded_failure_lasts_if_the_caller_commits
            a_recorded_failure_goes_with_the_callers_rollback
            a_released_row_keeps_its_history
            an_error_of_the_database_that_is_handed_on_leaves_the_transaction_whole
            a_panic_undoes_the_jobs_rows_and_reaches_the_caller
            a_result_that_panics_when_it_is_stored_undoes_all
            a_result_that_cannot_be_stored_is_completed_without_it
        }
        lost {
            a_body_that_rolls_back_by_hand_is_no_success
            a_body_that_commits_by_hand_keeps_rows_and_key_together
            a_body_that_begins_another_transaction_by_hand_is_no_success
            a_body_that_leaves_a_transaction_open_undoes_itself
        }
        place {
            a_connection_without_a_transaction_is_refused
            keys_in_memory_are_refused
            a_database_without_the_table_is_refused
            a_namespace_and_a_table_of_ones_own_are_used
        }
        nest {
            a_caller_may_be_inside_a_transaction_of_its_own
            a_job_may_run_another_in_its_own_transaction
            a_key_is_not_entered_again_from_inside
        }
        wait {
            a_second_call_waits_and_replays_when_the_first_one_is_committed
            a_second_call_waits_and_runs_when_the_first_one_is_rolled_back
            of_32_callers_one_runs
        }
        rows {
            a_completed_key_replays
            a_completed_key_without_a_result_is_told
            a_row_of_others_is_not_ours
            a_key_that_needs_review_or_failed_is_told
            a_committed_claim_is_in_progress_at_once
            what_no_longer_counts_runs
            a_stale_claim_needs_review_though_the_caller_rolls_back
        }
        inside {
            a_body_knows_its_key_its_fence_and_its_attempt
            each_ending_is_one_event
        }
    }
    servers {
        cancel {
            a_call_that_is_dropped_on_a_slow_network_leaves_all_or_nothing
        }
        lost {
            a_connection_that_ends_under_the_job_is_no_success
            a_connection_that_ends_anywhere_is_told
        }
        nest {
            a_job_of_another_mode_inside_commits_by_itself
        }
        wait {
            a_wait_is_bounded
            a_call_that_does_not_wait_is_refused_at_once
        }
        isolation {
            a_deadlock_of_two_transactions_costs_one_of_them
        }
        commit {
            a_commit_whose_reply_is_lost_leaves_a_replay
            a_commit_that_does_not_arrive_leaves_nothing
        }
    }
    sqlite {
        place {
            a_database_in_memory_is_another_for_each_connection
        }
        nest {
            a_job_of_another_mode_inside_is_refused_in_time
        }
        isolation {
            a_transaction_that_began_by_reading_begins_again
            a_deferred_transaction_waits_for_the_writer
            a_connection_that_began_with_a_rollback_journal_serves
        }
        commit {
            a_constraint_that_fails_at_the_commit_leaves_nothing
        }
    }
    postgres {
        failure {
            a_failure_is_not_recorded_over_a_claim_that_came_since
        }
        failure {
            an_error_of_the_database_that_is_kept_back_is_no_success
            a_transaction_that_has_failed_runs_nothing
        }
        place {
            keys_in_a_database_of_another_kind_are_refused
            a_schema_of_ones_own_is_used
        }
        wait {
            the_callers_own_limit_of_waits_stays
        }
        isolation {
            the_loser_of_a_race_begins_again
            workers_who_begin_again_have_one_effect_for_each_key
        }
        commit {
            a_constraint_that_fails_at_the_commit_leaves_nothing
        }
        cancel {
            a_call_that_is_dropped_while_it_waits_loses_nothing
        }
    }
    mysql {
        behind {
            a_deadlock_costs_one_transaction_and_no_effect
            a_deadlock_in_the_body_is_told_in_the_place_of_its_error
            a_deadlock_that_the_body_swallows_is_no_success
            an_implicit_commit_is_told_and_the_job_is_done
            an_implicit_commit_before_an_error_leaves_the_key_to_a_person
            the_limit_of_waits_is_as_it_was
            a_wait_may_be_as_long_as_one_likes
        }
        isolation {
            a_caller_with_an_old_snapshot_replays_what_was_done_since
            what_is_not_committed_is_no_answer
            a_call_waits_as_it_is_told_at_each_level
            repeats_lock_nothing_at_each_level
        }
    }
}
