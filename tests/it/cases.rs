//! Faults that real systems had, and what happens here instead: `CASES.md` beside this folder names their reports.
//!
//! Each case plays on every back end that it speaks of, under its own name:
//! `cases::sqlite::a12_a_late_finisher_changes_nothing`.

mod a1;
mod a11;
mod a12;
mod a14;
mod a15;
mod a17;
mod a18;
mod a21;
mod a22;
mod a23;
mod a3;
mod a5;
mod a6;
mod a8;
mod a9;
mod b10;
mod c10;
mod c12;
mod c13;
mod c14;
mod c16;
mod c17;
mod c19;
mod c2;
mod c3;
mod c4;
mod c6;
mod c7;
mod c9;
pub(crate) mod call;
pub(crate) mod gate;
pub(crate) mod life;
mod pool;
pub(crate) mod site;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use idem_tests::{Backend, Database};
use site::Site;

/// The cases, by what they ask of a back end.
macro_rules! cases {
    (everywhere $everywhere:tt databases $databases:tt sqlite $sqlite:tt servers $servers:tt postgres $postgres:tt mysql $mysql:tt pgbouncer $pgbouncer:tt) => {
        /// The names of all cases, among other words.
        const ALL: &str = stringify!($everywhere $databases $sqlite $servers $postgres $mysql $pgbouncer);

        on!(memory: super::Backend::Memory.database(), $everywhere);
        on!(sqlite: super::Backend::Sqlite.database(), $everywhere $databases $sqlite);
        on!(postgres: super::Backend::Postgres.database(), $everywhere $databases $servers $postgres);
        on!(mysql: super::Backend::Mysql.database(), $everywhere $databases $servers $mysql);
        on!(pgbouncer: super::Database::behind_pgbouncer(), $pgbouncer);
    };
}

macro_rules! on {
    ($name:ident: $database:expr, $({ $($file:ident { $($case:ident)+ })* })+) => {
        mod $name {
            $($($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::Site::plays_at($database, super::$file::$case).await;
                }
            )+)*)+
        }
    };
}

#[test]
fn the_list_of_cases_is_whole() {
    let names = |text: &'static str| -> BTreeSet<&str> {
        let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        words.filter(|word| word.contains('_') && word.starts_with(['a', 'c'])).collect()
    };
    let listed = names(include_str!("../CASES.md"));
    let played = names(ALL);
    let unlisted: Vec<_> = played.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not in CASES.md: {unlisted:?}");
    let idle: Vec<_> = listed
        .difference(&played)
        .filter(|word| word[1..].starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert!(idle.is_empty(), "in CASES.md alone: {idle:?}");
}

/// Each case plays where the list says, by the group that it stands in below.
#[test]
fn each_case_plays_where_the_list_says() {
    let mut played = BTreeMap::<&str, BTreeSet<&str>>::new();
    let (_, groups) = include_str!("cases.rs").rsplit_once("\ncases! {\n").expect("the cases");
    let mut places: &[&str] = &[];
    for line in groups.lines() {
        match (line.len() - line.trim_start().len(), line.trim()) {
            (4, "everywhere {") => places = &["memory", "SQLite", "Postgres", "MySQL"],
            (4, "databases {") => places = &["SQLite", "Postgres", "MySQL"],
            (4, "servers {") => places = &["Postgres", "MySQL"],
            (4, "sqlite {") => places = &["SQLite"],
            (4, "postgres {") => places = &["Postgres"],
            (4, "mysql {") => places = &["MySQL"],
            (4, "pgbouncer {") => places = &["pgbouncer"],
            (12, case) => played.entry(case).or_default().extend(places),
            _ => {}
        }
    }
    let lines = include_str!("../CASES.md").lines().filter_map(|line| line.strip_prefix("- `"));
    let listed = lines.filter_map(|line| {
        let (case, places) = line.strip_suffix(')')?.split_once("` (")?;
        let places = places.split(", ").collect::<BTreeSet<_>>();
        case.starts_with(['a', 'c']).then_some((case, places))
    });
    assert_eq!(listed.collect::<BTreeMap<_, _>>(), played, "in CASES.md and here");
}

/// The cases of the macro stand with its shapes, which are tests by themselves.
#[test]
fn the_list_of_cases_of_the_macro_is_whole() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut played = BTreeSet::new();
    for folder in ["it", "it/cases", "ui/pass", "renamed/src"] {
        for entry in fs::read_dir(tests.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).expect("a text");
                let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
                let of_the_macro = |name: &&str| {
                    name.starts_with('b') && name[1..].starts_with(|c: char| c.is_ascii_digit())
                };
                played.extend(names.filter(of_the_macro).map(str::to_owned));
            }
        }
    }
    let document = include_str!("../CASES.md");
    let quoted: Vec<_> = document.split('`').skip(1).step_by(2).collect();
    let listed: BTreeSet<_> = quoted
        .iter()
        .filter(|name| name.starts_with('b') && name[1..].starts_with(|c: char| c.is_ascii_digit()))
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(listed, played, "in CASES.md and among the tests");
    for file in quoted.iter().filter(|name| name.starts_with("ui/")) {
        assert!(tests.join(file).exists(), "CASES.md names {file}");
    }
}

cases! {
    everywhere {
        a1 {
            a1_two_functions_never_answer_for_each_other
            a1_two_functions_of_one_name_are_two
            a1_one_trait_method_of_two_types_is_two
            a1_a_provided_method_of_two_types_is_two
            a1_a_method_of_two_instances_of_a_generic_type_is_two
            a1_what_the_key_tells_apart_is_apart
            a1_a_shared_key_space_is_said_aloud
            a1_a_row_of_another_namespace_is_another_key
        }
        a3 {
            a3_each_tuple_has_a_key_of_its_own
            a3_a_plain_key_stays_readable
            a3_every_separator_is_kept_out_of_every_place
            a3_fields_of_a_struct_are_kept_apart
            a3_a_key_as_a_value_is_kept_whole
        }
        a5 {
            a5_i_a_completed_key_is_checked
            a5_ii_a_running_key_is_checked
            a5_iii_the_loser_of_a_race_is_checked
            a5_iv_a_takeover_is_checked
            a5_v_a_repeat_in_the_same_worker_is_checked
            a5_a_waiting_call_is_checked_before_it_waits
            a5_a_key_in_review_is_checked
            a5_a_failed_key_is_checked
            a5_a_recorded_effect_is_checked
            a5_the_order_of_a_map_does_not_matter
            a5_every_digit_counts
        }
        a6 {
            a6_keys_that_only_a_collation_would_equate_are_distinct
            a6_each_of_their_jobs_runs_at_once_beside_the_others
        }
        a8 {
            a8_keys_of_300_characters_are_distinct_and_idempotent
            a8_keys_of_4000_bytes_are_distinct_and_idempotent
            a8_a_key_on_the_edge_is_whole_and_one_over_it_is_hashed
            a8_a_long_key_is_cut_between_characters
            a8_a_long_key_is_looked_up_and_resolved_by_its_whole_text
        }
        a9 {
            a9_a_body_that_changes_its_argument_completes_its_own_row
            a9_a_body_that_changes_its_argument_fails_on_its_own_row
            a9_a_value_that_changes_under_the_body_keeps_its_key
            a9_a_method_that_changes_itself_keeps_its_key
            a9_heartbeats_go_to_the_row_of_the_claim
            a9_an_effect_is_recorded_under_the_key_it_began_with
        }
        a11 {
            a11_a_lease_is_as_long_as_it_says
            a11_a_lease_of_a_second_lasts_a_second
            a11_a_lease_of_a_second_ends_for_a_person
            a11_a_living_holder_outlasts_its_lease
        }
        a12 {
            a12_the_first_record_of_two_stays
            a12_a_key_that_is_freed_by_force_is_lost_to_its_holder
            a12_a_row_that_is_forgotten_is_lost_to_its_holder
        }
        a14 {
            a14_a_running_row_is_never_collected
        }
        a15 {
            a15_a_run_of_the_same_process_is_never_adopted
        }
        a17 {
            a17_an_empty_value_is_replayed
            a17_every_mode_and_shape_replays_nothing
            a17_what_json_cannot_carry_back_is_completed_without
            a17_no_result_is_told_apart_from_an_empty_one
        }
        a18 {
            a18_a_result_that_no_longer_fits_is_told_and_not_run_again
            a18_a_result_that_has_more_than_is_wanted_is_read
            a18_values_come_back_exactly
            a18_a_skipped_field_is_the_users
            a18_values_that_json_cannot_carry_are_completed_without
        }
        a21 {
            a21_a_job_that_meets_its_own_key_is_told_at_once
            a21_a_refusal_that_is_handed_on_is_the_bodys_own_error
            a21_a_synchronous_job_that_meets_its_own_key_is_told_at_once
            a21_a_task_that_a_body_starts_is_another_caller
            a21_a_child_that_waits_has_its_parents_value
            a21_another_handle_is_another_caller
        }
        a22 {
            a22_a_panic_makes_the_claim_stale_at_once
            a22_a_panic_before_the_mark_frees_the_key_and_after_it_holds_it
            a22_a_panic_of_a_recorded_effect_records_nothing
            a22_an_early_return_is_an_error_like_any_other
            a22_a_panic_of_a_synchronous_body_reaches_its_caller
            a22_a_body_that_always_panics_is_not_taken_over_for_ever
            a22_a_panic_before_the_claim_leaves_nothing
            a22_a_result_that_panics_when_it_is_stored_holds_the_key
            a22_an_error_that_panics_when_it_is_looked_at_holds_the_key
            a22_an_argument_that_cannot_be_converted_claims_nothing
        }
        a23 {
            a23_without_force_a_living_holder_is_left_alone
            a23_by_force_its_fence_is_passed_and_it_is_told
            a23_a_result_that_a_person_gives_by_force_stays
            a23_a_key_that_is_given_up_by_force_stays_given_up
            a23_a_row_that_is_forgotten_by_force_stays_away
            a23_a_completed_key_is_freed_by_force_alone_and_its_result_is_kept
            a23_a_purge_takes_no_living_row
        }
        c2 {
            c2_callers_that_give_up_at_random_lose_and_repeat_nothing
            c2_a_body_that_is_dropped_leaves_its_claim_to_the_policy
        }
        c16 {
            c16_on_a_plain_thread
            c16_on_a_worker_of_a_runtime
            c16_on_the_only_thread_of_a_runtime
            c16_in_a_runtime_without_drivers
            c16_on_the_only_blocking_thread
            c16_in_place_of_a_worker
            c16_under_another_executor
            c16_waiting_under_another_executor
            c16_inside_another_job
            c16_in_a_drop
            c16_on_scoped_threads
            c16_many_times_in_one_task
        }
        c17 {
            c17_a_runtime_that_goes_leaves_its_jobs_to_their_policy
            c17_a_runtime_that_goes_during_a_completion_loses_nothing
            c17_nothing_goes_on_when_a_thousand_jobs_have_ended
            c17_a_handle_outlives_the_runtime_it_was_made_in
            c17_each_test_reaches_its_own_database
            c17_a_shutdown_waits_for_what_runs
            c17_a_call_that_waits_is_not_begun_after_a_shutdown
            c17_a_job_outlives_the_last_handle
        }
    }
    databases {
        a1 {
            a1_a_row_of_another_template_is_not_ours
        }
        a5 {
            a5_the_order_of_a_map_does_not_matter_in_another_process
        }
        a6 {
            a6_a_row_is_found_by_its_own_spelling_alone
        }
        a11 {
            a11_whatever_its_length_a_lease_can_be_taken_over_at_its_end
            a11_a_claim_without_an_end_is_neither_free_nor_held_for_ever
        }
        a12 {
            a12_a_body_that_hogs_its_executor_keeps_its_claim
            a12_a_late_finisher_after_its_heirs_end_changes_nothing
            a12_b_late_finisher_before_its_heirs_end_changes_nothing
            a12_c_late_failure_is_its_callers_alone
            a12_c_late_failure_leaves_a_completion_alone
            a12_d_late_heartbeat_neither_prolongs_nor_revives
            a12_d_body_that_awaits_is_dropped_when_it_is_late
            a12_a_late_synchronous_finisher_changes_nothing
            a12_under_alert_a_late_completion_counts
            a12_under_alert_a_late_failure_stays_in_review
            a12_under_alert_a_heartbeat_revives_a_claim_that_nobody_took
            a12_a_late_verdict_changes_nothing
            a12_a_key_that_a_person_freed_is_completed_by_whoever_ends_first
        }
        a14 {
            a14_a_claim_is_not_collected_whatever_its_times_say
            a14_at_its_expiry_a_key_runs_once
            a14_at_its_expiry_an_effect_is_recorded_anew
            a14_a_row_that_is_collected_under_its_holder_stays_away
            a14_expired_keys_are_collected_or_live_anew
            a14_a_sweep_of_many_rows_goes_in_batches_beside_claims
            a14_a_claim_whose_holder_died_waits_for_its_heir
        }
        a15 {
            a15_of_twenty_heirs_from_four_processes_one_takes_over
            a15_of_twenty_heirs_under_alert_none_runs
            a15_a_namesake_has_no_right_to_the_row
            a15_a_namesake_that_comes_back_is_not_its_heir
        }
        a17 {
            a17_an_empty_value_is_replayed_in_another_process
        }
        a18 {
            a18_a_result_that_is_no_json_is_told
        }
        a23 {
            a23_a_worker_of_another_process_is_freed_by_force_and_told
            a23_a_foreign_holder_is_left_alone_unless_forced
            a23_each_deed_leaves_its_line_and_a_refusal_none
            a23_persons_who_decide_at_once_do_not_overrule_each_other_unseen
        }
        a22 {
            a22_a_panic_with_a_connection_in_hand_leaves_the_pool_usable
            a22_a_panic_that_aborts_is_the_death_of_its_process
        }
        c2 {
            c2_an_effect_whose_caller_leaves_during_the_completion_is_recorded
            c2_a_recorded_effect_whose_caller_leaves_is_recorded
            c2_a_claim_that_waits_when_its_caller_leaves_is_withdrawn
        }
        c3 {
            c3_jobs_share_a_pool_of_one
            c3_jobs_share_a_pool_of_four
            c3_a_body_may_hold_the_whole_pool
            c3_a_completion_waits_for_a_busy_database
            c3_a_time_out_of_the_pool_is_the_bodys_own_error
            c3_a_transactional_body_that_asks_the_pool_is_rolled_back
        }
        c12 {
            c12_workers_in_other_zones_agree
            c12_a_lease_of_a_second_is_a_second
            c12_twenty_years_pass_2038
            c12_a_moment_that_cannot_be_read_frees_nothing
        }
        c14 {
            c14_a_table_name_may_need_quotes
            c14_namespaces_share_a_table_and_no_key
            c14_ten_processes_that_start_at_once_make_one_table
            c14_migrations_of_others_and_ours_do_not_meet
            c14_migrations_that_run_at_once_do_not_meet
            c14_the_table_may_be_made_by_the_applications_own_migrations
            c14_an_older_build_is_refused_by_a_newer_table
            c14_a_newer_build_says_what_an_older_table_lacks
            c14_columns_of_others_are_left_alone
            c14_a_column_of_others_that_must_be_given_is_named
            c14_a_companion_of_somebody_else_is_named
            c14_what_is_half_there_is_made_whole
            c14_triggers_of_others_change_no_answer
            c14_triggers_of_others_change_no_answer_in_a_transaction
        }
        c7 {
            c7_a_a_completed_key_leaves_the_transaction_whole
            c7_b_a_key_in_progress_elsewhere_leaves_the_transaction_whole
            c7_c_a_key_that_is_claimed_at_once_leaves_each_transaction_whole
        }
        c17 {
            c17_a_test_that_fails_with_a_pending_job_fails_by_itself
            c17_threads_go_with_their_handle
        }
        c19 {
            c19_a_table_that_was_made_by_hand_will_do
            c19_a_type_that_will_not_do_is_named_at_the_start
            c19_a_column_that_takes_no_null_is_named_at_the_start
            c19_a_key_that_is_not_compared_byte_by_byte_is_named_at_the_start
            c19_a_row_of_nulls_is_a_claim_without_owner
            c19_a_completion_of_nulls_is_one
            c19_a_state_that_is_wiped_out_under_its_holder_is_written_anew
            c19_a_state_of_a_newer_build_is_nobodys_to_touch
            c19_a_state_of_a_newer_build_ends_its_holders_claim
            c19_a_change_under_busy_workers_fails_no_call
        }
    }
    sqlite {
        c10 {
            c10_no_caller_hears_of_a_locked_database
            c10_a_rollback_journal_is_no_trouble
            c10_a_reader_of_a_rollback_journal_delays_the_start_only
            c10_a_body_that_holds_the_write_lock_completes_late
            c10_a_body_that_holds_the_write_lock_is_dropped_at_the_end_of_its_lease
            c10_a_job_inside_a_write_transaction_is_refused_in_time
            c10_a_database_in_memory_is_one_and_stays
            c10_a_database_in_memory_survives_callers_that_give_up
        }
        c19 {
            c19_a_value_that_cannot_be_read_stops_its_own_key_alone
        }
    }
    servers {
        a14 {
            a14_a_slow_collector_delays_its_own_keys_alone
            a14_a_collector_that_dies_leaves_its_batch_to_the_next
        }
        c13 {
            c13_a_read_only_session_runs_nothing_and_is_not_used_again
            c13_a_completion_waits_for_a_server_that_is_read_only
            c13_connections_that_are_ended_cost_nothing
            c13_silence_during_a_claim_is_no_claim
            c13_silence_during_heartbeats_is_told_to_the_body
            c13_silence_during_a_completion_is_waited_out_or_told
            c13_a_completion_that_arrives_after_an_heir_is_refused
            c13_nothing_waits_for_a_silent_server_for_long
        }
        c2 {
            c2_callers_that_give_up_on_a_slow_network_lose_and_repeat_nothing
            c2_a_claim_that_nobody_waits_for_any_more_is_given_back
        }
        c6 {
            c6_a_claim_that_meets_an_uncommitted_one_learns_what_became_of_it
            c6_a_row_that_is_gone_when_it_is_read_is_claimed_again
            c6_of_callers_at_once_one_runs_at_every_isolation
            c6_a_record_that_meets_an_uncommitted_row_is_written_in_the_end
        }
        c9 {
            c9_a_heartbeat_never_fails_its_own_completion
            c9_a_completion_that_collided_is_sent_again_and_the_job_is_not
            c9_completions_that_collided_together_all_count
            c9_every_other_write_that_collided_is_sent_again
            c9_heartbeats_that_collided_are_sent_again
            c9_collisions_without_end_make_the_completion_unknown
        }
        c12 {
            c12_sessions_in_other_zones_agree
        }
    }
    postgres {
        a14 {
            a14_a_fence_passes_the_collected_one_in_the_midst_of_a_collection
        }
        c4 {
            c4_a_pooler_is_told_from_a_server
        }
        c12 {
            c12_a_change_of_the_clocks_moves_no_moment
        }
        c9 {
            c9_jobs_at_a_strict_isolation_run_once
            c9_a_transactional_completion_that_collides_is_a_conflict_and_undoes_the_body
            c9_a_transactional_conflict_that_is_ignored_commits_no_half
        }
        c14 {
            c14_every_statement_goes_to_the_schema_that_was_named
            c14_a_table_that_was_found_stays_the_one
            c14_companions_of_another_schema_are_not_taken
            c14_a_callers_search_path_leads_nowhere_else
            c14_a_schema_that_is_not_there_is_named
            c14_a_role_that_may_only_read_and_write_rows_is_enough
            c14_no_ddl_is_sent_where_the_table_is_in_place
            c14_a_role_that_may_not_create_is_given_the_statements
            c14_a_schema_that_may_not_be_entered_is_told
            c14_a_right_that_is_missing_is_named_before_a_body_runs
        }
        c19 {
            c19_a_column_that_is_too_narrow_is_named_at_the_start
        }
    }
    mysql {
        c14 {
            c14_every_statement_goes_to_the_database_that_was_named
        }
    }
    pgbouncer {
        c4 {
            c4_a_pooler_is_told_from_a_server
            c4_a_pooler_that_comes_later_is_found
            c4_five_processes_create_the_table_at_once
            c4_forty_clients_make_a_thousand_claims
            c4_a_claim_whose_client_is_killed_locks_nothing
            c4_a_claim_whose_client_freezes_is_given_up
            c4_a_table_whose_maker_is_killed_is_made_by_the_next
            c4_no_session_state_is_left_behind
            c4_jobs_in_a_callers_transaction_leave_nothing_prepared
            c4_no_statement_needs_a_session
        }
    }
}
