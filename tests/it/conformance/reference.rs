//! Every store beside the reference: what the one answers, the other answers.

mod history;
mod step;

use std::{cell::Cell, sync::Arc, time::Duration};

use idem_runtime::{
    __private::{Job, OnStale},
    record::{Decision, Status, Terms, decide},
    store::{Moment, NewRow},
};
use idem_tests::table::Table;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::{runtime::Handle, task::block_in_place};

use super::{
    foreign::terms,
    rows::{self, written},
    subject::Subject,
};

const STATUSES: [&str; 6] = ["processing", "completed", "failed", "released", "needs_review", "paused"];

/// How many histories of a store are compared. They are the same in every run.
const HISTORIES: u32 = 64;

pub(super) async fn any_history_of_writes_reads_as_the_references(s: &Subject) {
    let config = Config { cases: HISTORIES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let number = Cell::new(0);
    let compared = block_in_place(|| {
        runner.run(&step::steps(), |steps| {
            number.set(number.get() + 1);
            Handle::current().block_on(history::compare(s, number.get(), steps))
        })
    });
    if let Err(difference) = compared {
        panic!("{difference}");
    }
}

pub(super) async fn each_row_is_decided_as_the_references(s: &Subject) {
    static RETRY: Job = Job::lock_first("a", &["billing:", ""], "app", "app.rs", 1).on_stale(OnStale::Retry);
    static ALERT: Job = Job::lock_first("a", &["billing:", ""], "app", "app.rs", 1).on_stale(OnStale::Alert);
    static AFTER: Job = Job::record_after("a", &["billing:", ""], "app", "app.rs", 1);
    static OTHER: Job = Job::lock_first("a", &["refund:", ""], "app", "app.rs", 2);

    let moments = [Moment::Never, Moment::At(rows::PAST), Moment::In(rows::HOUR)];
    let mut batch = Vec::new();
    for status in STATUSES {
        for lease in moments {
            for expires in moments {
                for owner in [None, Some(rows::owner(1))] {
                    for on_stale in [None, Some("retry"), Some("alert"), Some("tomorrow")] {
                        for (fingerprint, takeovers) in [(None, 0), (Some("a".to_owned()), 9)] {
                            let row = NewRow {
                                status: Status::from(status),
                                template: Some("billing:<>".to_owned()),
                                lease,
                                expires,
                                owner: owner.clone(),
                                on_stale: on_stale.map(ToOwned::to_owned),
                                fingerprint,
                                takeovers,
                                ..rows::claim(1)
                            };
                            batch.push(rows::insert(&format!("billing:{}", batch.len()), row));
                        }
                    }
                }
            }
        }
    }
    let mut reference = Table::default();
    let keys: Vec<Arc<str>> = batch.iter().map(|item| item.key.clone()).collect();
    for answer in s.store.insert(&batch).await.expect("answers") {
        written(answer);
    }
    for item in &batch {
        written(reference.insert(history::NOW, item).answer);
    }
    let theirs = s.store.read(&keys).await.expect("answers");
    for (theirs, key) in theirs.iter().zip(&keys) {
        let ours = reference.read(history::NOW, key).expect("a row");
        let (theirs, ours) = (theirs.as_ref().expect("a row"), &*ours);
        for job in [&RETRY, &ALERT, &AFTER, &OTHER] {
            for fingerprint in [None, Some("a"), Some("b")] {
                let terms = Terms { fingerprint, ..terms(job) };
                let [theirs, ours] =
                    [theirs, ours].map(|record| roughly(decide(Some(record), record.now, &terms)));
                assert_eq!(theirs, ours, "{job:?}");
            }
        }
    }
}

/// A decision without the microseconds.
fn roughly(decision: Decision) -> Decision {
    match decision {
        Decision::Busy { retry_after: Some(_) } => Decision::Busy { retry_after: Some(Duration::ZERO) },
        other => other,
    }
}
