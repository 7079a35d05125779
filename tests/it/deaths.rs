//! Where a process dies, and what becomes of its key: real processes, killed or stopped at every point of a call, and
//! then the deliveries that come after them.
//!
//! What follows is the table of it, which docs/guarantees.md shows. Each group is of one job that ends in one way, after
//! something that happened to its key before. A line names a test and the point, and then the answers: of a delivery at
//! once, of one when the lease has ended, (where the worker was stopped and goes on: of that worker itself,) and of one
//! more; then how often the body ran and its effect is there, the state of the row, its attempt, and its error. Each line
//! plays on every database under its own name: `deaths::sqlite::killed_under_alert::after_the_effect`.

mod answer;
mod apart;
mod jobs;
mod phases;
mod play;
mod stop;
mod table;
mod worker;

use self::{
    answer::Answer::{ClaimLost, Fails, InProgress, NeedsReview, PreviouslyFailed, Replays, Runs, TakesOver},
    jobs::{
        Ends::{Badly, Early, Well},
        Job::{
            After, AfterRecord, Alert, ByMark, Inside, InsideRecord, Record, Release, Retry, RetryHold,
            Short, Sync,
        },
    },
    stop::Stop::{
        AfterCommit, AfterEffect, BeforeClaim, BeforeCommit, BeforeEffect, BodyReturned, ClaimWritten,
        Claimed, Ended, EndingWritten, Flagged, Told,
    },
    table::{
        Before::{Died, Expired, Failed, Nothing},
        Group, Line, lines,
    },
};

lines! {
    killed_under_alert Alert Well Nothing
        "`lock_first` with `on_stale = \"alert\"` and `on_error = \"hold\"`, the defaults: **at most one effect**"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays => 1 1 completed 1;
        after_the_claim
            ClaimWritten: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        before_the_body
            Claimed: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        before_the_effect
            BeforeEffect: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        after_the_effect
            AfterEffect: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 1 1 completed 1;
        before_the_queue_hears
            Ended: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_in_a_sync_job Sync Well Nothing
        "The same in a synchronous function"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays => 1 1 completed 1;
        after_the_claim
            ClaimWritten: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        before_the_body
            Claimed: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        before_the_effect
            BeforeEffect: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        after_the_effect
            AfterEffect: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 1 1 completed 1;
        before_the_queue_hears
            Ended: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_with_a_held_error Alert Badly Nothing
        "The same, where the body returns an `Err` and nobody knows whether its effect happened"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1 "down";
        before_the_queue_hears
            Ended: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1 "down";
    }

    killed_with_a_released_error Release Badly Nothing
        "With `on_error = \"release\"`, where the body returns an `Err` although its effect happened"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: Runs, Replays, Replays => 2 2 completed 2 "down";
        before_the_queue_hears
            Ended: Runs, Replays, Replays => 2 2 completed 2 "down";
    }

    killed_with_a_recorded_error Record Badly Nothing
        "With `on_error = \"record\"`, where the body returns an `Err`"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: PreviouslyFailed, PreviouslyFailed, PreviouslyFailed => 1 1 failed 1 "down";
        before_the_queue_hears
            Ended: PreviouslyFailed, PreviouslyFailed, PreviouslyFailed => 1 1 failed 1 "down";
    }

    killed_under_by_mark ByMark Well Nothing
        "With `on_error = \"by_mark\"`: a death does not tell on which side of the mark it was"
    {
        before_the_mark
            BeforeEffect: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        after_the_effect
            AfterEffect: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_with_an_error_before_the_mark ByMark Early Nothing
        "The same, where the body returns an `Err` before the mark"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        after_the_end
            EndingWritten: Runs, Replays, Replays => 1 1 completed 2 "down";
        before_the_queue_hears
            Ended: Runs, Replays, Replays => 1 1 completed 2 "down";
    }

    killed_with_an_error_after_the_mark ByMark Badly Nothing
        "The same, where the body returns an `Err` after the mark"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1 "down";
        before_the_queue_hears
            Ended: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1 "down";
    }

    killed_in_a_new_life Short Well Expired
        "A key that was completed once and is past its ttl: its effect of then, and at most one of its new life"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays => 2 2 completed 1;
        after_the_claim
            ClaimWritten: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_effect
            AfterEffect: InProgress, NeedsReview, NeedsReview => 2 2 needs_review 1;
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 2 2 completed 1;
    }

    killed_while_it_calls_a_person Alert Well Died
        "A delivery that finds a claim whose worker died after the effect, and dies in its turn: a person is told all the same"
    {
        before_it_looks
            BeforeClaim: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1;
        before_a_person_is_told
            Flagged: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_a_person_was_told
            Told: NeedsReview, NeedsReview, NeedsReview => 1 1 needs_review 1;
    }

    killed_under_retry Retry Well Nothing
        "`lock_first` with `on_stale = \"retry\"`: **at least one effect**"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays => 1 1 completed 1;
        after_the_claim
            ClaimWritten: InProgress, TakesOver, Replays => 1 1 completed 2;
        before_the_body
            Claimed: InProgress, TakesOver, Replays => 1 1 completed 2;
        before_the_effect
            BeforeEffect: InProgress, TakesOver, Replays => 1 1 completed 2;
        after_the_effect
            AfterEffect: InProgress, TakesOver, Replays => 2 2 completed 2;
        after_the_body
            BodyReturned: InProgress, TakesOver, Replays => 2 2 completed 2;
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 1 1 completed 1;
        before_the_queue_hears
            Ended: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_with_an_error_under_retry Retry Badly Nothing
        "The same, where the body returns an `Err`, which releases"
    {
        after_the_body
            BodyReturned: InProgress, TakesOver, Replays => 2 2 completed 2;
        after_the_end
            EndingWritten: Runs, Replays, Replays => 2 2 completed 2 "down";
        before_the_queue_hears
            Ended: Runs, Replays, Replays => 2 2 completed 2 "down";
    }

    killed_with_a_held_error_under_retry RetryHold Badly Nothing
        "The same, where `on_error = \"hold\"`: a held claim is stale at once"
    {
        after_the_body
            BodyReturned: InProgress, TakesOver, Replays => 2 2 completed 2;
        after_the_end
            EndingWritten: TakesOver, Replays, Replays => 2 2 completed 2 "down";
        before_the_queue_hears
            Ended: TakesOver, Replays, Replays => 2 2 completed 2 "down";
    }

    killed_in_a_takeover Retry Well Died
        "A worker that takes over from one that died after its effect, and dies in its turn"
    {
        before_the_claim
            BeforeClaim: TakesOver, Replays, Replays => 2 2 completed 2;
        after_the_claim
            ClaimWritten: InProgress, TakesOver, Replays => 2 2 completed 3;
        before_the_body
            Claimed: InProgress, TakesOver, Replays => 2 2 completed 3;
        before_the_effect
            BeforeEffect: InProgress, TakesOver, Replays => 2 2 completed 3;
        after_the_effect
            AfterEffect: InProgress, TakesOver, Replays => 3 3 completed 3;
        after_the_body
            BodyReturned: InProgress, TakesOver, Replays => 3 3 completed 3;
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 2 2 completed 2;
        before_the_queue_hears
            Ended: Replays, Replays, Replays => 2 2 completed 2;
    }

    killed_after_a_release Retry Well Failed
        "A worker of a key that an `Err` has released after its effect"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays => 2 2 completed 2 "down";
        after_the_claim
            ClaimWritten: InProgress, TakesOver, Replays => 2 2 completed 3 "down";
        after_the_effect
            AfterEffect: InProgress, TakesOver, Replays => 3 3 completed 3 "down";
        after_the_completion
            EndingWritten: Replays, Replays, Replays => 2 2 completed 2 "down";
    }

    killed_under_record_after After Well Nothing
        "`record_after`: **at least one effect**"
    {
        before_the_look
            BeforeClaim: Runs, Replays, Replays => 1 1 completed 1;
        before_the_body
            Claimed: Runs, Replays, Replays => 1 1 completed 1;
        before_the_effect
            BeforeEffect: Runs, Replays, Replays => 1 1 completed 1;
        after_the_effect
            AfterEffect: Runs, Replays, Replays => 2 2 completed 1;
        after_the_body
            BodyReturned: Runs, Replays, Replays => 2 2 completed 1;
        after_the_record
            EndingWritten: Replays, Replays, Replays => 1 1 completed 1;
        before_the_queue_hears
            Ended: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_with_an_error_under_record_after After Badly Nothing
        "The same, where the body returns an `Err`, of which nothing is recorded"
    {
        after_the_body
            BodyReturned: Runs, Replays, Replays => 2 2 completed 1;
        before_the_queue_hears
            Ended: Runs, Replays, Replays => 2 2 completed 1;
    }

    killed_with_a_recorded_error_under_record_after AfterRecord Badly Nothing
        "The same, where `on_error = \"record\"`"
    {
        after_the_body
            BodyReturned: Runs, Replays, Replays => 2 2 completed 1;
        after_the_record
            EndingWritten: PreviouslyFailed, PreviouslyFailed, PreviouslyFailed => 1 1 failed 1 "down";
        before_the_queue_hears
            Ended: PreviouslyFailed, PreviouslyFailed, PreviouslyFailed => 1 1 failed 1 "down";
    }

    killed_in_a_new_life_under_record_after After Well Expired
        "A key that was recorded once and is past its ttl"
    {
        after_the_effect
            AfterEffect: Runs, Replays, Replays => 3 3 completed 1;
        after_the_record
            EndingWritten: Replays, Replays, Replays => 2 2 completed 1;
    }

    killed_in_a_transaction Inside Well Nothing
        "`transactional`: **the job's rows once**, together with the key"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays => 1 1 completed 1;
        after_the_claim
            ClaimWritten: Runs, Replays, Replays => 1 1 completed 1;
        before_the_body
            Claimed: Runs, Replays, Replays => 1 1 completed 1;
        before_the_rows
            BeforeEffect: Runs, Replays, Replays => 1 1 completed 1;
        after_the_rows
            AfterEffect: Runs, Replays, Replays => 2 1 completed 1;
        after_the_body
            BodyReturned: Runs, Replays, Replays => 2 1 completed 1;
        after_the_completion
            EndingWritten: Runs, Replays, Replays => 2 1 completed 1;
        after_the_call
            Ended: Runs, Replays, Replays => 2 1 completed 1;
        before_the_commit
            BeforeCommit: Runs, Replays, Replays => 2 1 completed 1;
        after_the_commit
            AfterCommit: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_with_an_error_in_a_transaction Inside Badly Nothing
        "The same, where the body returns an `Err`, and its caller commits all the same"
    {
        after_the_body
            BodyReturned: Runs, Replays, Replays => 2 1 completed 1;
        before_the_commit
            BeforeCommit: Runs, Replays, Replays => 2 1 completed 1;
        after_the_commit
            AfterCommit: Runs, Replays, Replays => 2 1 completed 1;
    }

    killed_with_a_recorded_error_in_a_transaction InsideRecord Badly Nothing
        "The same, where `on_error = \"record\"`"
    {
        after_the_body
            BodyReturned: Runs, Replays, Replays => 2 1 completed 1;
        before_the_commit
            BeforeCommit: Runs, Replays, Replays => 2 1 completed 1;
        after_the_commit
            AfterCommit: PreviouslyFailed, PreviouslyFailed, PreviouslyFailed => 1 0 failed 1 "down";
    }

    stopped_under_alert Alert Well Nothing
        "`lock_first` with `on_stale = \"alert\"`: a completion counts for as long as nobody took the claim"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays, Replays => 1 1 completed 1;
        after_the_claim
            ClaimWritten: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        before_the_body
            Claimed: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        before_the_effect
            BeforeEffect: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        after_the_effect
            AfterEffect: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        after_the_body
            BodyReturned: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        after_the_completion
            EndingWritten: Replays, Replays, Runs, Replays => 1 1 completed 1;
    }

    stopped_in_a_sync_job Sync Well Nothing
        "The same in a synchronous function"
    {
        after_the_claim
            ClaimWritten: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        after_the_effect
            AfterEffect: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
        after_the_body
            BodyReturned: InProgress, NeedsReview, Runs, Replays => 1 1 completed 1;
    }

    stopped_with_a_held_error Alert Badly Nothing
        "The same, where the body returns an `Err`: the key needs review, whoever comes first"
    {
        after_the_effect
            AfterEffect: InProgress, NeedsReview, Fails, NeedsReview => 1 1 needs_review 1;
        after_the_body
            BodyReturned: InProgress, NeedsReview, Fails, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: NeedsReview, NeedsReview, Fails, NeedsReview => 1 1 needs_review 1 "down";
    }

    stopped_with_a_released_error Release Badly Nothing
        "The same with `on_error = \"release\"`: a key that needs review is not released by a late `Err`"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, Fails, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: Runs, Replays, Fails, Replays => 2 2 completed 2 "down";
    }

    stopped_with_a_recorded_error Record Badly Nothing
        "The same with `on_error = \"record\"`"
    {
        after_the_body
            BodyReturned: InProgress, NeedsReview, Fails, NeedsReview => 1 1 needs_review 1;
        after_the_end
            EndingWritten: PreviouslyFailed, PreviouslyFailed, Fails, PreviouslyFailed => 1 1 failed 1 "down";
    }

    stopped_under_retry Retry Well Nothing
        "`lock_first` with `on_stale = \"retry\"`: the row is the heir's"
    {
        before_the_claim
            BeforeClaim: Runs, Replays, Replays, Replays => 1 1 completed 1;
        after_the_claim
            ClaimWritten: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 2;
        before_the_body
            Claimed: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 2;
        before_the_effect
            BeforeEffect: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 2;
        after_the_effect
            AfterEffect: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 2;
        after_the_body
            BodyReturned: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 2;
        after_the_completion
            EndingWritten: Replays, Replays, Runs, Replays => 1 1 completed 1;
    }

    stopped_with_an_error_under_retry Retry Badly Nothing
        "The same, where the body returns an `Err`, which releases nothing of the heir's"
    {
        before_the_effect
            BeforeEffect: InProgress, TakesOver, Fails, Replays => 2 2 completed 2;
        after_the_body
            BodyReturned: InProgress, TakesOver, Fails, Replays => 2 2 completed 2;
        after_the_end
            EndingWritten: Runs, Replays, Fails, Replays => 2 2 completed 2 "down";
    }

    stopped_with_a_held_error_under_retry RetryHold Badly Nothing
        "The same, where `on_error = \"hold\"`"
    {
        after_the_body
            BodyReturned: InProgress, TakesOver, Fails, Replays => 2 2 completed 2;
        after_the_end
            EndingWritten: TakesOver, Replays, Fails, Replays => 2 2 completed 2 "down";
    }

    stopped_in_a_takeover Retry Well Died
        "A worker that takes over from one that died after its effect, and is taken over from in its turn"
    {
        before_the_claim
            BeforeClaim: TakesOver, Replays, Replays, Replays => 2 2 completed 2;
        after_the_claim
            ClaimWritten: InProgress, TakesOver, ClaimLost, Replays => 3 3 completed 3;
        after_the_effect
            AfterEffect: InProgress, TakesOver, ClaimLost, Replays => 3 3 completed 3;
        after_the_body
            BodyReturned: InProgress, TakesOver, ClaimLost, Replays => 3 3 completed 3;
        after_the_completion
            EndingWritten: Replays, Replays, TakesOver, Replays => 2 2 completed 2;
    }

    stopped_under_record_after After Well Nothing
        "`record_after`: the first record stays, and each has its own value"
    {
        before_the_body
            Claimed: Runs, Replays, Runs, Replays => 2 2 completed 1;
        after_the_effect
            AfterEffect: Runs, Replays, Runs, Replays => 2 2 completed 1;
        after_the_body
            BodyReturned: Runs, Replays, Runs, Replays => 2 2 completed 1;
        after_the_record
            EndingWritten: Replays, Replays, Runs, Replays => 1 1 completed 1;
    }

    stopped_with_a_recorded_error_under_record_after AfterRecord Badly Nothing
        "The same, where `on_error = \"record\"`: a late failure replaces no completion"
    {
        after_the_body
            BodyReturned: Runs, Replays, Fails, Replays => 2 2 completed 1;
        after_the_record
            EndingWritten: PreviouslyFailed, PreviouslyFailed, Fails, PreviouslyFailed => 1 1 failed 1 "down";
    }
}
