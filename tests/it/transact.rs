//! Jobs inside their caller's transaction: `mode = "transactional"`.
//!
//! Each case plays on every database that it speaks of, under its own name:
//! `transact::sqlite::rows_and_key_appear_when_the_caller_commits`.

mod behind;
mod cancel;
pub(crate) mod dialect;
mod jobs;
pub(crate) mod stage;
mod together;

use idem_tests::Backend;
use sqlx::{MySql, Postgres, Sqlite};

use self::stage::Stage;
use crate::cases::site::Site;

/// The cases, by the databases that they speak of.
macro_rules! transact {
    (databases $databases:tt sqlite $sqlite:tt postgres $postgres:tt mysql $mysql:tt) => {
        on!(sqlite: Sqlite on Sqlite, $databases $sqlite);
        on!(postgres: Postgres on Postgres, $databases $postgres);
        on!(mysql: MySql on Mysql, $databases $mysql);
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
    }
    sqlite {}
    postgres {
        cancel {
            a_call_that_is_dropped_on_a_slow_network_leaves_all_or_nothing
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
        }
    }
}
