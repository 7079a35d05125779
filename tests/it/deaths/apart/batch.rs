//! Many jobs of one process at once: statements are shared, and so is the death.

use idem_tests::{Child, child::Parent};
use tokio::task::JoinSet;

use crate::{
    cases::site::{Site, Worker},
    deaths::{
        answer::Answer,
        jobs::{Call, Ends, Job, parsed},
        stop::{SPARED, STOP, watch},
    },
};

const JOB: &str = "IDEM_DEATHS_JOB";
const KEYS: usize = 40;

fn id(n: usize) -> String {
    format!("batch-{n}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn delivers_many() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    watch();
    let job = parsed(JOB, Job::ALL);
    deliver_all(&w, job, "itself").await;
    parent.say("ended");
}

/// Delivers every key at once.
async fn deliver_all(w: &Worker, job: Job, name: &'static str) -> Vec<Answer> {
    let mut calls = JoinSet::new();
    for n in 0..KEYS {
        let w = w.clone();
        calls.spawn(async move {
            let id = id(n);
            // No transaction is asked for.
            let backend = idem_tests::Backend::Memory;
            let call = Call { w: &w, backend, url: "", id: &id, ends: Ends::Well, name };
            let (result, outcome) = job.call(call).await;
            (n, Answer::of(&result, outcome))
        });
    }
    let mut answers = calls.join_all().await;
    answers.sort_unstable_by_key(|(n, _)| *n);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// A process delivers them all and dies when so many answers were handed out.
fn dies_amid(site: &Site, job: Job, stop: &str, spared: usize) {
    let mut command = site.child("deaths::apart::batch::delivers_many");
    command.env(JOB, format!("{job:?}")).env(STOP, stop).env(SPARED, spared.to_string());
    let mut child = Child::spawn(&mut command);
    child.expect("at");
    child.kill();
}

/// What becomes of a key: the answer at once, the one when its lease has ended, and how often its effect happened.
async fn fates(site: &Site, job: Job) -> Vec<(Answer, Answer, usize)> {
    let w = site.worker().await;
    let at_once = deliver_all(&w, job, "heir").await;
    site.execute("UPDATE idempotency_keys SET lease_until = 1 WHERE status = 'processing'").await;
    let later = deliver_all(&w, job, "heir").await;
    let effects = (0..KEYS).map(|n| site.effects(&id(n)));
    at_once.into_iter().zip(later).zip(effects).map(|((at_once, later), n)| (at_once, later, n)).collect()
}

pub(super) async fn of_claims_that_went_out_together_none_is_lost_or_run_twice(site: &Site) {
    of_claims(site, Job::Alert, 0).await;
    let another = Site::on(site.backend());
    of_claims(&another, Job::Retry, 7).await;
}

async fn of_claims(site: &Site, job: Job, spared: usize) {
    dies_amid(site, job, "ClaimWritten", spared);
    let before: Vec<_> = (0..KEYS).map(|n| site.effects(&id(n))).collect();
    let fates = fates(site, job).await;
    let begun = fates.iter().filter(|(at_once, ..)| *at_once != Answer::Runs).count();
    assert!(begun > spared, "{fates:?}");
    for ((at_once, later, effects), before) in fates.into_iter().zip(before) {
        let right = match (at_once, later) {
            (Answer::Runs, Answer::Replays) => (before, effects) == (0, 1),
            // One that was heard of early has come to its end already.
            (Answer::Replays, Answer::Replays) => (before, effects) == (1, 1),
            (Answer::InProgress, Answer::NeedsReview) => {
                job == Job::Alert && before <= 1 && effects == before
            }
            (Answer::InProgress, Answer::TakesOver) => job == Job::Retry && effects == before + 1,
            _ => false,
        };
        assert!(right, "{job:?}: {at_once:?} {later:?} {before} {effects}");
    }
}

pub(super) async fn of_endings_that_went_out_together_none_is_lost(site: &Site) {
    dies_amid(site, Job::Alert, "EndingWritten", 5);
    let fates = fates(site, Job::Alert).await;
    let written = fates.iter().filter(|(at_once, ..)| *at_once == Answer::Replays).count();
    assert!(written > 5, "{fates:?}");
    for (at_once, later, effects) in fates {
        let right = match (at_once, later) {
            (Answer::Replays | Answer::Runs, Answer::Replays) => effects == 1,
            (Answer::InProgress, Answer::NeedsReview) => effects <= 1,
            _ => false,
        };
        assert!(right, "{at_once:?} {later:?} {effects}");
    }
}
