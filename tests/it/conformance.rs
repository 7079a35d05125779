//! What a store promises, one case a promise. Every store runs every case that its kind of database can be put to,
//! under its own name: `conformance::sqlite::a_stale_claim_is_taken_over`.

mod after;
mod batch;
mod busy;
mod call;
mod cancel;
mod claim;
mod decision;
mod failure;
mod fence;
mod fingerprint;
mod finish;
mod foreign;
mod keys;
mod locks;
mod phase;
mod prepare;
mod probe;
mod purge;
mod raw;
mod reference;
mod renew;
mod replay;
mod resolve;
mod rows;
mod stale;
mod subject;
mod takeover;
mod ttl;
mod watcher;
mod writer;

use idem_tests::{Backend, Database};
use subject::Subject;

/// The cases, by what they ask of a back end.
macro_rules! conformance {
    (every_store $every:tt databases $databases:tt row_locks $row_locks:tt one_writer $one_writer:tt) => {
        on!(memory: super::Backend::Memory.database(), $every);
        on!(sqlite: super::Backend::Sqlite.database(), $every $databases $one_writer);
        on!(postgres: super::Backend::Postgres.database(), $every $databases $row_locks);
        on!(pgbouncer: super::Database::behind_pgbouncer(), $every $databases $row_locks);
        on!(mysql: super::Backend::Mysql.database(), $every $databases $row_locks);
    };
}

macro_rules! on {
    ($name:ident: $database:expr, $({ $($group:ident { $($case:ident)+ })+ })+) => {
        mod $name {
            $($($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::Subject::meets($database, super::$group::$case).await;
                }
            )+)+)+
        }
    };
}

conformance! {
    every_store {
        claim {
            every_column_comes_back_as_it_was_written
            the_columns_that_a_claim_leaves_out_are_null
            a_held_key_is_found_as_it_stands
            a_repeat_of_a_completed_key_writes_nothing
            of_32_claimers_one_wins
            batches_that_race_for_the_same_keys_share_them_out
            a_lost_claim_reply_is_recognised
            a_claim_that_arrives_again_after_its_end_is_not_taken_for_a_new_one
            a_row_can_begin_completed
            a_row_can_begin_failed
            deadlines_count_from_the_databases_clock
            a_deadline_of_a_hundred_years_is_kept
        }
        takeover {
            a_stale_claim_is_taken_over
            of_32_heirs_one_takes_over
            a_lost_takeover_reply_is_recognised
            a_takeover_that_arrives_again_after_its_end_is_not_taken_for_a_new_one
            a_heartbeat_defeats_a_takeover
            a_completion_defeats_a_takeover
            a_row_that_is_gone_cannot_be_replaced
            each_part_of_the_expected_version_counts
            an_expected_null_is_met_by_null_alone
            a_new_life_of_a_key_has_a_new_birth
            a_replaced_row_keeps_nothing_of_the_old_one
            a_replacement_by_a_completion_has_its_moment
            a_flag_for_review_raises_no_fence
            a_heartbeat_and_a_takeover_have_one_winner
            a_completion_and_a_takeover_have_one_winner
            a_row_without_an_owner_is_replaced_by_its_version
        }
        fence {
            a_fence_is_the_databases_time
            takeovers_within_one_tick_have_growing_fences
            a_fence_grows_across_a_release
            a_fence_grows_across_a_purge_within_one_tick
            a_fence_grows_across_a_forgotten_row
            a_fence_survives_every_ending_and_a_hold_raises_it
        }
        finish {
            a_completion_is_recorded
            a_completion_for_ever_has_no_expiry
            a_lost_completion_reply_is_recognised
            a_zombie_cannot_complete
            an_owner_with_another_fence_cannot_complete
            a_late_completion_counts_while_nobody_took_the_claim
            each_ending_counts_in_its_own_states_alone
            an_absent_key_has_nothing_to_end
            a_release_frees_the_key_and_keeps_its_history
            a_withdrawn_claim_counts_as_no_attempt
            a_hold_makes_the_claim_stale_at_once
            an_ending_without_an_error_keeps_the_last_one
            a_failure_is_recorded_with_its_message_and_expiry
            no_result_is_not_the_result_null
            results_come_back_byte_for_byte
            an_expiry_of_no_time_is_now
        }
        renew {
            a_heartbeat_moves_the_end_of_the_lease
            a_heartbeat_revives_a_stale_claim_that_nobody_took
            a_heartbeat_after_a_takeover_neither_revives_nor_prolongs
            a_heartbeat_with_another_fence_is_lost
            a_living_holder_goes_on_in_review
            a_heartbeat_of_an_ended_execution_is_lost
            a_heartbeat_that_is_still_under_way_does_not_revive_what_its_holder_gave_up
            each_renewal_of_a_batch_has_its_own_lease
        }
        batch {
            an_empty_batch_is_answered_with_nothing
            a_batch_mixes_absent_and_present_keys
            answers_come_in_the_order_of_the_batch
            reading_leaves_out_no_key
            a_thousand_items_are_answered_one_by_one
            a_batch_holds_endings_of_every_kind
            one_insert_and_many_answer_alike
            one_ending_and_many_answer_alike
            one_heartbeat_and_many_answer_alike
        }
        keys {
            keys_that_only_a_collation_would_equate_are_distinct
            keys_that_look_like_sql_are_text
            keys_of_255_bytes_are_whole
        }
        purge {
            purging_takes_ended_rows_past_their_expiry_alone
            a_purged_key_is_fresh
            purging_goes_in_batches
            two_collectors_share_the_work
            a_key_that_lives_anew_is_not_collected
            the_stored_expiry_counts
            forgetting_takes_the_expected_row_alone
            purging_takes_the_phases_of_its_jobs_along
            a_job_that_is_not_purged_keeps_its_phases
            a_batch_of_a_purge_leaves_the_phases_of_other_jobs
            a_job_that_is_claimed_while_it_is_purged_keeps_its_phases_or_is_gone
            forgetting_takes_the_phases_along
            a_resolution_leaves_its_line_in_the_audit
        }
        phase {
            a_phase_is_claimed_under_the_claim_of_its_job
            a_phase_can_begin_completed
            a_phase_that_is_there_is_found
            a_phase_is_replaced_under_the_claim_of_its_job
            a_phase_ends_under_the_claim_of_its_job
            nothing_counts_under_a_claim_that_was_taken_over
            nothing_counts_under_a_claim_that_ended
            nothing_counts_under_a_claim_of_another_name_or_fence
            nothing_counts_under_a_job_that_is_gone
            everything_counts_under_review
            endings_alone_count_once_a_person_has_released_the_key
            a_lost_reply_of_a_phase_is_recognised
            a_batch_holds_several_phases_of_one_job
            a_superseded_phase_does_not_hinder_its_batch_mates
            a_takeover_and_a_phases_end_have_one_winner
            of_32_executions_at_once_one_claims_a_phase
            a_dropped_phase_is_written_or_not_and_the_store_goes_on
            what_lies_between_two_keys_is_read_in_the_order_of_bytes
        }
        foreign {
            a_row_with_only_a_key_is_a_claim_without_owner
            a_claim_without_owner_is_busy_until_it_is_old_and_then_for_a_person
            two_claims_without_owner_are_told_apart_by_their_birth
            a_completion_by_hand_counts
            a_claim_of_ours_can_be_completed_by_hand
            an_unknown_status_is_nobodys_to_touch
            an_unknown_policy_in_a_row_is_the_strictest
        }
        cancel {
            a_dropped_claim_is_made_or_not_and_the_store_goes_on
            a_dropped_completion_is_recorded_or_not_and_the_store_goes_on
            a_dropped_takeover_is_made_or_not_and_the_store_goes_on
        }
        replay {
            a_unit_replays
            values_that_look_like_nothing_replay
            values_come_back_exactly
            what_json_cannot_carry_back_is_completed_without_a_result
            a_result_over_the_limit_is_completed_without_it
            the_limit_of_results_can_be_set
            a_result_that_no_longer_fits_is_an_error_and_never_a_rerun
            without_replay_a_repeat_is_told_that_it_is_done
            of_32_callers_one_runs
            a_key_that_is_too_long_for_its_column_stays_itself
            a_living_completion_is_not_purged
        }
        fingerprint {
            another_fingerprint_is_refused_after_the_completion
            another_fingerprint_is_refused_where_the_answer_is_remembered
            another_fingerprint_is_refused_while_the_first_runs
            another_fingerprint_is_refused_to_the_losers_of_a_race
            another_fingerprint_does_not_take_a_stale_claim_over
            a_key_that_is_free_takes_any_fingerprint
            the_order_of_a_map_is_no_difference
        }
        stale {
            under_retry_a_held_key_runs_again
            under_alert_a_held_key_waits_for_a_person_who_is_told_once
            after_its_takeovers_a_key_waits_for_a_person
            a_deploy_that_becomes_lenient_frees_nothing
            a_deploy_that_becomes_strict_holds_what_is_there
        }
        probe {
            an_effect_that_happened_completes_the_key
            an_effect_that_happened_without_a_result_to_store_completes_the_key_too
            an_effect_that_did_not_happen_happens_under_the_same_claim
            what_nobody_knows_waits_for_a_person_who_is_told_once
            a_probe_that_is_dropped_is_asked_again
            a_call_that_is_dropped_at_any_moment_frees_no_doubtful_key
            a_probe_whose_lease_is_lost_is_dropped
            a_probe_that_answers_too_late_lets_nothing_run
            a_key_that_was_asked_about_often_enough_waits_for_a_person
            a_probe_that_calls_its_own_job_is_told_so
            a_panic_of_the_body_is_asked_about_at_once
            plain_functions_ask_too
            of_the_rows_policy_and_the_calls_the_stricter_holds
        }
        failure {
            a_released_key_runs_again_at_once_with_its_history
            an_error_before_the_mark_releases_and_after_it_holds
            a_recorded_failure_is_what_repeats_get
            a_function_judges_each_error
            any_error_text_is_recorded_cut_and_cleaned
            a_panic_holds_and_goes_on_to_the_caller
            a_panic_before_the_mark_releases
            a_body_that_is_dropped_half_way_leaves_a_stale_claim
            a_call_that_is_dropped_before_its_body_leaves_the_key_free
            a_body_knows_its_key_and_its_fence
            a_plain_function_runs_once_too
        }
        after {
            an_effect_is_recorded_after_it_happened
            an_effect_that_failed_is_not_recorded
            two_at_once_both_run_and_the_first_completion_stays
            a_failure_never_replaces_a_completion
            a_completion_replaces_a_failure
        }
        busy {
            a_busy_key_is_an_error_that_says_when
            a_call_that_waits_gets_the_firsts_result
            a_wait_ends
            a_job_that_calls_itself_is_told_so
        }
        resolve {
            of_equal_resolutions_at_once_one_changed_the_key
            a_person_frees_a_key
            a_person_completes_a_key
            a_person_gives_a_key_up
            a_living_holder_is_left_alone_unless_forced_and_then_fenced_off
            a_completed_key_is_changed_only_by_force
            a_forgotten_key_is_as_if_it_had_never_been
            a_key_without_a_row_has_nothing_to_decide
        }
        ttl {
            a_ttl_may_be_20_years_or_none
        }
        watcher {
            a_stale_claim_that_nobody_calls_is_turned_over_and_told
            what_may_run_again_is_left_to_the_next_delivery
            a_policy_of_tomorrow_is_turned_over
            a_claim_without_owner_is_turned_over_at_its_age
            what_a_body_held_is_told_without_a_call
            a_claim_that_is_renewed_is_left_alone_and_told_of_once_it_is_overdue
            what_is_overdue_before_its_first_heartbeat_is_told_of
            a_key_that_is_turned_over_again_while_its_hook_runs_is_told_of_again
            of_ten_watchers_one_tells_of_each_claim
            a_row_whose_teller_died_is_told_of_by_one_other
            a_holder_that_heartbeats_in_review_keeps_nobody_from_being_told
            a_hook_that_takes_long_is_not_overtaken
            a_process_without_a_hook_leaves_the_telling_to_one_that_has_one
            a_look_that_is_old_turns_nothing_over
            a_look_finds_what_waits_for_review_and_nothing_else
        }
        reference {
            each_row_is_decided_as_the_references
            any_history_of_writes_reads_as_the_references
        }
    }
    // Their rows can be reached past the store.
    databases {
        purge {
            a_phase_leaves_its_fence_behind
        }
        fence {
            a_takeover_passes_a_fence_that_is_ahead_of_the_clock
            a_purge_remembers_a_fence_that_is_ahead_of_the_clock
            a_forgotten_row_leaves_its_fence_behind
        }
        foreign {
            moments_written_by_hand_are_read
            the_table_is_as_it_is_documented
            what_a_claim_leaves_in_the_table_is_readable_by_hand
        }
        prepare {
            preparing_again_changes_nothing
            ten_processes_prepare_at_once
            a_missing_table_is_refused_where_it_may_not_be_made
            a_table_that_lacks_columns_is_refused_with_what_to_run
            a_schema_of_a_newer_version_is_refused_by_name
        }
        decision {
            every_row_is_answered_as_the_decision_table_says
        }
        replay {
            a_completion_by_hand_replays_a_unit_and_nothing_else
            a_namespace_has_its_own_keys
        }
        stale {
            a_dead_workers_claim_is_busy_for_its_lease_and_no_longer
            a_claim_without_owner_is_never_taken_over
            a_zombies_result_is_not_recorded
            a_zombies_error_is_its_own_and_touches_nothing
            a_late_completion_counts_even_in_review
        }
        probe {
            a_dead_workers_claim_is_asked_about_once_it_is_stale
            a_claim_without_owner_is_not_asked_about
        }
        after {
            somebodys_claim_is_not_waited_for
        }
        phase {
            a_transaction_is_told_whether_its_job_stands
        }
        ttl {
            a_completed_key_past_its_ttl_lives_anew
            a_recorded_effect_past_its_ttl_happens_anew
            a_failure_past_its_ttl_lives_anew
            purging_frees_what_is_past_its_ttl
        }
    }
    // A transaction holds the rows it touches.
    row_locks {
        phase {
            a_transaction_waits_shortly_for_the_row_of_its_job
        }
        locks {
            a_locked_row_delays_its_own_ending_alone
            what_a_person_freed_stays_free_when_its_claim_is_given_back
            a_key_that_is_being_inserted_delays_its_own_claim_alone
            a_key_whose_insert_is_rolled_back_is_free
            a_locked_row_cannot_be_taken_over_yet
            a_locked_row_is_read_and_found_without_waiting
            heartbeats_pass_over_a_locked_row
            purging_passes_over_locked_rows
            purging_looks_behind_locked_rows
            purging_passes_over_a_job_while_a_row_of_it_is_locked
            a_phase_of_a_locked_job_is_locked_and_changes_nothing
            a_phase_counts_from_the_write_and_not_from_the_wait_before_it
            a_lease_counts_from_the_write_and_not_from_the_wait_before_it
            a_completion_counts_from_the_write_and_not_from_the_wait_before_it
            a_takeover_counts_from_the_write_and_not_from_the_wait_before_it
            calls_of_other_keys_go_on_beside_a_locked_one
            a_transaction_that_sits_on_20_keys_costs_no_other_key_its_lease
            sessions_in_other_time_zones_mean_the_same_moments
            batches_in_opposite_orders_do_not_lock_each_other_out
        }
    }
    // A transaction that writes holds the whole database.
    one_writer {
        writer {
            a_foreign_writer_delays_no_reader
            a_foreign_writer_is_waited_for_shortly_and_nothing_is_changed
            a_lease_counts_from_the_write_and_not_from_the_wait_before_it
        }
    }
}
