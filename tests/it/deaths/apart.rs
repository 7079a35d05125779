//! Deaths that fit no line of the table: in the midst of many, of a conversation with the server, of what a person
//! does, and by other means than a signal.

mod batch;
mod conversation;
mod means;
mod patience;
mod transaction;

use idem_tests::Backend;

use crate::cases::site::Site;

macro_rules! apart {
    (databases $databases:tt sqlite $sqlite:tt servers $servers:tt) => {
        on!(sqlite: Sqlite, $databases $sqlite);
        on!(postgres: Postgres, $databases $servers);
        on!(mysql: Mysql, $databases $servers);
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

apart! {
    databases {
        batch {
            of_claims_that_went_out_together_none_is_lost_or_run_twice
            of_endings_that_went_out_together_none_is_lost
        }
        means {
            an_abort_is_a_death
            an_exit_is_a_death
            a_stack_that_overflows_is_a_death
            a_completion_without_a_file_descriptor_to_spare_is_recorded
        }
        patience {
            after_six_deaths_a_key_waits_for_a_person
            a_call_that_waits_for_a_worker_that_dies_does_not_wait_for_ever
            a_death_of_a_call_that_waits_leaves_nothing
            a_claim_that_was_heard_of_too_late_is_not_entered
            a_claim_that_was_heard_of_too_late_is_made_anew
            a_claim_that_was_heard_of_too_late_frees_no_key_that_needs_review
        }
        transaction {
            a_transaction_that_stands_still_holds_its_key_and_no_more
        }
    }
    sqlite {
        conversation {
            a_set_up_that_is_killed_at_any_moment_is_done_by_the_next
        }
    }
    servers {
        conversation {
            a_set_up_that_is_killed_at_any_reply_is_done_by_the_next
            a_job_that_is_killed_at_any_reply_has_one_effect_at_most
            a_job_that_is_killed_at_any_reply_is_taken_over
            a_failing_job_that_is_killed_at_any_reply_is_held_or_released
            a_recorded_effect_that_is_killed_at_any_reply_is_never_lost
            a_purge_that_is_killed_at_any_reply_leaves_the_rest_to_the_next
            a_resolution_that_is_killed_at_any_reply_leaves_its_line_or_nothing
            a_key_that_is_forgotten_when_its_person_dies_leaves_its_line_or_nothing
        }
        patience {
            a_death_after_a_heartbeat_that_was_not_heard_of_waits_for_the_new_end
        }
    }
}
