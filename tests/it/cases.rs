//! Faults that real systems had, and what happens here instead: `CASES.md` beside this folder names their reports.
//!
//! Each case plays on every back end that it speaks of, under its own name:
//! `cases::sqlite::a12_a_late_finisher_changes_nothing`.

mod a1;
mod a3;
mod a5;
mod a8;
mod a9;
mod call;
mod gate;
mod site;

use idem_tests::Backend;
use site::Site;

/// The cases, by what they ask of a back end.
macro_rules! cases {
    (everywhere $everywhere:tt databases $databases:tt sqlite $sqlite:tt postgres $postgres:tt) => {
        on!(memory: Memory, $everywhere);
        on!(sqlite: Sqlite, $everywhere $databases $sqlite);
        on!(postgres: Postgres, $everywhere $databases $postgres);
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
    }
    databases {
        a1 {
            a1_a_row_of_another_template_is_not_ours
        }
        a5 {
            a5_the_order_of_a_map_does_not_matter_in_another_process
        }
    }
    sqlite {
    }
    postgres {
    }
}
