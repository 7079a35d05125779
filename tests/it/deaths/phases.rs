//! The lines of jobs of phases: where a worker dies in the first of two, or between them. State, attempt and error are
//! those of that phase's row.

mod jobs;

pub(super) use self::jobs::{after, alert, inside, probe, retry};
use super::{
    answer::Answer::{ClaimLost, InProgress, NeedsReview, Replays, TakesOver},
    jobs::{
        Ends::Well,
        Job::{PhaseAfter, PhaseAlert, PhaseInside, PhaseProbe, PhaseRetry},
    },
    stop::Stop::{
        AfterCommit, AfterPhaseEffect, BeforeCommit, BeforePhase, BeforePhaseEffect, BetweenPhases,
        JobEnding, JobReturned, PhaseClaimed, PhaseEnded, PhaseEnding, PhaseReturned, PhaseWritten,
        ProbeAnswered,
    },
    table::{
        Before::{Died, Nothing},
        Group, Line, lines,
    },
};

lines! {
    killed_in_a_phase PhaseAlert Well Nothing
        "A phase with `on_stale = \"alert\"`, the default, of a job with `on_stale = \"retry\"`: **at most one effect**"
    {
        before_the_phase
            BeforePhase: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_claim
            PhaseWritten: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        before_the_body
            PhaseClaimed: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        before_the_effect
            BeforePhaseEffect: InProgress, NeedsReview, NeedsReview => 0 0 needs_review 1;
        after_the_effect
            AfterPhaseEffect: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_body
            PhaseReturned: InProgress, NeedsReview, NeedsReview => 1 1 needs_review 1;
        after_the_completion
            PhaseEnding: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_job_hears
            PhaseEnded: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_next_phase
            BetweenPhases: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_last_phase
            JobReturned: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_jobs_completion
            JobEnding: Replays, Replays, Replays => 1 1 completed 1;
    }

    killed_in_a_probed_phase PhaseProbe Well Nothing
        "A phase with `on_stale = probe(…)`: **one effect, where the probe's answers are true**"
    {
        before_the_phase
            BeforePhase: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_claim
            PhaseWritten: InProgress, TakesOver, Replays => 1 1 completed 2;
        before_the_body
            PhaseClaimed: InProgress, TakesOver, Replays => 1 1 completed 2;
        before_the_effect
            BeforePhaseEffect: InProgress, TakesOver, Replays => 1 1 completed 2;
        after_the_effect
            AfterPhaseEffect: InProgress, TakesOver, Replays => 1 1 completed 2;
        after_the_body
            PhaseReturned: InProgress, TakesOver, Replays => 1 1 completed 2;
        after_the_completion
            PhaseEnding: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_next_phase
            BetweenPhases: InProgress, TakesOver, Replays => 1 1 completed 1;
    }

    killed_while_it_asks_about_a_phase PhaseProbe Well Died
        "A worker that takes the job over from one that died after the phase's effect, and dies in its turn"
    {
        after_the_claim
            PhaseWritten: InProgress, TakesOver, Replays => 1 1 completed 3;
        after_the_answer
            ProbeAnswered: InProgress, TakesOver, Replays => 1 1 completed 3;
        after_the_completion
            PhaseEnding: InProgress, TakesOver, Replays => 1 1 completed 2;
    }

    killed_in_a_phase_under_retry PhaseRetry Well Nothing
        "A phase with `on_stale = \"retry\"`, which makes no claim of its own: **at least one effect**"
    {
        before_the_phase
            BeforePhase: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_body
            PhaseClaimed: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_effect
            BeforePhaseEffect: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_effect
            AfterPhaseEffect: InProgress, TakesOver, Replays => 2 2 completed 1;
        after_the_body
            PhaseReturned: InProgress, TakesOver, Replays => 2 2 completed 1;
        after_the_completion
            PhaseEnding: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_next_phase
            BetweenPhases: InProgress, TakesOver, Replays => 1 1 completed 1;
    }

    killed_in_a_recorded_phase PhaseAfter Well Nothing
        "A phase with `mode = \"record_after\"`: **at least one effect**"
    {
        before_the_phase
            BeforePhase: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_body
            PhaseClaimed: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_effect
            BeforePhaseEffect: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_effect
            AfterPhaseEffect: InProgress, TakesOver, Replays => 2 2 completed 1;
        after_the_body
            PhaseReturned: InProgress, TakesOver, Replays => 2 2 completed 1;
        after_the_record
            PhaseEnding: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_next_phase
            BetweenPhases: InProgress, TakesOver, Replays => 1 1 completed 1;
    }

    killed_in_a_transactional_phase PhaseInside Well Nothing
        "A phase with `mode = \"transactional\"`: **its rows once**, together with its own"
    {
        before_the_phase
            BeforePhase: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_claim
            PhaseWritten: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_rows
            BeforePhaseEffect: InProgress, TakesOver, Replays => 1 1 completed 1;
        after_the_rows
            AfterPhaseEffect: InProgress, TakesOver, Replays => 2 1 completed 1;
        after_the_body
            PhaseReturned: InProgress, TakesOver, Replays => 2 1 completed 1;
        after_the_completion
            PhaseEnding: InProgress, TakesOver, Replays => 2 1 completed 1;
        before_the_commit
            BeforeCommit: InProgress, TakesOver, Replays => 2 1 completed 1;
        after_the_commit
            AfterCommit: InProgress, TakesOver, Replays => 1 1 completed 1;
        before_the_next_phase
            BetweenPhases: InProgress, TakesOver, Replays => 1 1 completed 1;
    }

    stopped_in_a_phase PhaseAlert Well Nothing
        "A phase with `on_stale = \"alert\"`: who was taken over completes no phase, and enters none"
    {
        before_the_phase
            BeforePhase: InProgress, TakesOver, ClaimLost, Replays => 1 1 completed 1;
        after_the_claim
            PhaseWritten: InProgress, NeedsReview, ClaimLost, NeedsReview => 1 1 needs_review 1;
        after_the_effect
            AfterPhaseEffect: InProgress, NeedsReview, ClaimLost, NeedsReview => 1 1 needs_review 1;
        after_the_body
            PhaseReturned: InProgress, NeedsReview, ClaimLost, NeedsReview => 1 1 needs_review 1;
        after_the_completion
            PhaseEnding: InProgress, TakesOver, ClaimLost, Replays => 1 1 completed 1;
        after_the_last_phase
            JobReturned: InProgress, TakesOver, ClaimLost, Replays => 1 1 completed 1;
    }

    stopped_in_a_recorded_phase PhaseAfter Well Nothing
        "A phase with `mode = \"record_after\"`: the row is the heir's"
    {
        before_the_body
            PhaseClaimed: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 1;
        after_the_effect
            AfterPhaseEffect: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 1;
        after_the_body
            PhaseReturned: InProgress, TakesOver, ClaimLost, Replays => 2 2 completed 1;
        after_the_record
            PhaseEnding: InProgress, TakesOver, ClaimLost, Replays => 1 1 completed 1;
    }
}
