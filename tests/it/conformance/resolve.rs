//! What a person decides about a key.

use idem_runtime::{ErrorKind, Idem, Outcome, Resolution, Resolved, Status, idempotent, with_outcome};

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, refused, row},
    rows,
    subject::{Subject, race},
};

#[idempotent(key = "conf-review:<id>", idem = idem)]
async fn stops_once(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    match runs.enter() {
        1 => body_fails("time-out"),
        nth => Ok(nth),
    }
}

/// A key in review.
async fn stopped(idem: &Idem, runs: &Runs) {
    failed(stops_once(1, idem, runs).await);
    assert_eq!(refused(stops_once(1, idem, runs).await), ErrorKind::NeedsReview);
}

pub(super) async fn a_person_frees_a_key(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    stopped(&idem, &runs).await;
    let resolved = idem.resolve("conf-review:1", Resolution::Retry).note("no such charge").await;
    let Resolved::Changed { from, to, reenqueue, .. } = resolved.expect("a decision") else {
        panic!("changed")
    };
    assert_eq!((from, to, reenqueue), (Status::NeedsReview, Status::Released, true));
    let (again, outcome) = with_outcome(stops_once(1, &idem, &runs)).await;
    assert_eq!((again.expect("done"), outcome), (2, Some(Outcome::Executed)));
}

pub(super) async fn a_person_completes_a_key(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    stopped(&idem, &runs).await;
    let found = Resolution::Completed(Some(7.into()));
    let resolved = idem.resolve("conf-review:1", found).await.expect("a decision");
    assert!(
        matches!(resolved, Resolved::Changed { to: Status::Completed, reenqueue: false, .. }),
        "{resolved:?}"
    );
    assert_eq!((stops_once(1, &idem, &runs).await.expect("replayed"), runs.count()), (7, 1));
}

pub(super) async fn a_person_gives_a_key_up(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    stopped(&idem, &runs).await;
    idem.resolve("conf-review:1", Resolution::Failed).note("customer is gone").await.expect("a decision");
    let Err(Fault::Idem(error)) = stops_once(1, &idem, &runs).await else { panic!("it was given up") };
    assert_eq!(error.kind(), ErrorKind::PreviouslyFailed);
    assert!(error.to_string().contains("customer is gone"), "{error}");
    assert_eq!(runs.count(), 1);
}

#[idempotent(key = "conf-forced:<id>", on_stale = "retry", idem = idem)]
async fn works_on(id: u32, idem: &Idem, gate: &Gate) -> Result<u32, Fault> {
    gate.pass().await;
    Ok(id)
}

pub(super) async fn a_living_holder_is_left_alone_unless_forced_and_then_fenced_off(s: &Subject) {
    let (idem, other) = (s.idem().await, s.idem().await);
    let gate = Gate::default();
    let (holder, ()) = tokio::join!(works_on(1, &idem, &gate), async {
        gate.entered().await;
        let before = row(&idem, "conf-forced:1").await;
        let refusal = other.resolve("conf-forced:1", Resolution::Retry).await.expect("a decision");
        assert!(
            matches!(&refusal, Resolved::Refused { reason, .. } if reason.contains("alive")),
            "{refusal:?}"
        );
        assert_eq!(row(&idem, "conf-forced:1").await, before);

        let forced = other.resolve("conf-forced:1", Resolution::Retry).force().await.expect("a decision");
        assert!(matches!(forced, Resolved::Changed { .. }), "{forced:?}");
        assert!(row(&idem, "conf-forced:1").await.fence > before.fence);
        gate.open();
    });
    assert_eq!(refused(holder), ErrorKind::ClaimLost);
    assert_eq!(row(&idem, "conf-forced:1").await.status, Status::Released);
}

pub(super) async fn a_completed_key_is_changed_only_by_force(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    runs.enter();
    assert_eq!(stops_once(1, &idem, &runs).await.expect("done"), 2);
    let before = row(&idem, "conf-review:1").await;
    let refusal = idem.resolve("conf-review:1", Resolution::Retry).await.expect("a decision");
    assert!(matches!(refusal, Resolved::Refused { .. }), "{refusal:?}");
    let refusal = idem.forget("conf-review:1").await.expect("a decision");
    assert!(matches!(refusal, Resolved::Refused { .. }), "{refusal:?}");
    assert_eq!(row(&idem, "conf-review:1").await, before);

    idem.resolve("conf-review:1", Resolution::Retry).force().await.expect("a decision");
    assert_eq!(stops_once(1, &idem, &runs).await.expect("runs again"), 3);
}

pub(super) async fn a_forgotten_key_is_as_if_it_had_never_been(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    stopped(&idem, &runs).await;
    let old = row(&idem, "conf-review:1").await;
    idem.forget("conf-review:1").note("test data").await.expect("a decision");
    assert_eq!(idem.lookup("conf-review:1").await.expect("a look-up"), None);
    assert_eq!(stops_once(1, &idem, &runs).await.expect("runs"), 2);
    let new = row(&idem, "conf-review:1").await;
    assert_eq!((new.attempt, new.error.as_deref()), (1, None));
    assert!(new.fence > old.fence);
}

pub(super) async fn a_key_without_a_row_has_nothing_to_decide(s: &Subject) {
    let idem = s.idem().await;
    for resolution in [Resolution::Retry, Resolution::Failed, Resolution::Completed(None)] {
        assert_eq!(idem.resolve("conf-review:9", resolution).await.expect("a decision"), Resolved::NotFound);
    }
    assert_eq!(idem.forget("conf-review:9").await.expect("a decision"), Resolved::NotFound);
}

pub(super) async fn of_equal_resolutions_at_once_one_changed_the_key(s: &Subject) {
    s.insert("same", rows::in_state(Status::NeedsReview, 1)).await;
    let mut people = Vec::new();
    for _ in 0..4 {
        people.push(s.idem().await);
    }
    let decided = race(
        people
            .into_iter()
            .map(|idem| async move { idem.resolve("same", Resolution::Retry).await.expect("an answer") }),
    );
    let decided = decided.await;
    let changed = decided.iter().filter(|resolved| matches!(resolved, Resolved::Changed { .. })).count();
    assert_eq!((changed, s.raw.audit("same").await.len()), (1, 1), "{decided:?}");
}
