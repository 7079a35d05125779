//! `record_after`: nothing stands before the effect, and the first completion stays.

use idem_runtime::{Idem, Outcome, Status, idempotent, with_outcome};

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, row},
    rows,
    subject::Subject,
};

#[idempotent(key = "conf-after:<id>", mode = "record_after", idem = idem)]
async fn mails(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    let key = format!("conf-after:{id}");
    assert_eq!(idem.lookup(&key).await?, None, "no row stands before the effect");
    Ok(runs.enter())
}

pub(super) async fn an_effect_is_recorded_after_it_happened(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    let (first, outcome) = with_outcome(mails(1, &idem, &runs)).await;
    assert_eq!((first.expect("sent"), outcome), (1, Some(Outcome::Executed)));
    let (again, outcome) = with_outcome(mails(1, &s.idem().await, &runs)).await;
    assert_eq!((again.expect("replayed"), outcome, runs.count()), (1, Some(Outcome::Replayed), 1));

    let read = row(&idem, "conf-after:1").await;
    let day = 24 * 60 * 60 * 1_000_000;
    let term = read.expires_at.expect("a day by default") - read.completed_at.expect("a completion");
    assert!((day - 1_000..day + 1_000_001).contains(&term), "{term}");
}

#[idempotent(key = "conf-after-error:<id>", mode = "record_after", idem = idem)]
async fn bounces(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    if runs.enter() == 1 { body_fails("mailbox full") } else { Ok(()) }
}

pub(super) async fn an_effect_that_failed_is_not_recorded(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(bounces(1, &idem, &runs).await);
    assert_eq!(idem.lookup("conf-after-error:1").await.expect("a look-up"), None);
    bounces(1, &idem, &runs).await.expect("sent");
    assert_eq!(runs.count(), 2);
}

#[idempotent(key = "conf-after-both:<id>", mode = "record_after", on_error = "record", idem = idem)]
async fn at_once(id: u32, idem: &Idem, gate: &Gate, ending: Result<&str, &str>) -> Result<String, Fault> {
    gate.pass().await;
    ending.map(ToOwned::to_owned).or_else(body_fails)
}

/// Lets two calls meet in their bodies and end one after the other; what each got.
async fn meet(
    s: &Subject,
    first: Result<&str, &str>,
    second: Result<&str, &str>,
) -> [Result<String, Fault>; 2] {
    let idems = [s.idem().await, s.idem().await];
    let gates = [Gate::default(), Gate::default()];
    let (first, second, ()) = tokio::join!(
        async {
            let returned = at_once(1, &idems[0], &gates[0], first).await;
            gates[1].open();
            returned
        },
        at_once(1, &idems[1], &gates[1], second),
        async {
            gates[0].entered().await;
            gates[1].entered().await;
            gates[0].open();
        }
    );
    [first, second]
}

pub(super) async fn two_at_once_both_run_and_the_first_completion_stays(s: &Subject) {
    let [first, second] = meet(s, Ok("A"), Ok("B")).await;
    assert_eq!((first.expect("its own"), second.expect("its own")), ("A".to_owned(), "B".to_owned()));
    let idem = s.idem().await;
    assert_eq!(at_once(1, &idem, &Gate::default(), Ok("C")).await.expect("replayed"), "A");
}

pub(super) async fn a_failure_never_replaces_a_completion(s: &Subject) {
    let [first, second] = meet(s, Ok("A"), Err("no")).await;
    assert_eq!((first.expect("its own"), failed(second).as_str()), ("A".to_owned(), "no"));
    let read = row(&s.idem().await, "conf-after-both:1").await;
    assert_eq!((read.status, read.result.as_deref(), read.error), (Status::Completed, Some("\"A\""), None));
}

pub(super) async fn a_completion_replaces_a_failure(s: &Subject) {
    let [first, second] = meet(s, Err("no"), Ok("B")).await;
    assert_eq!((failed(first).as_str(), second.expect("its own")), ("no", "B".to_owned()));
    let read = row(&s.idem().await, "conf-after-both:1").await;
    assert_eq!((read.status, read.result.as_deref()), (Status::Completed, Some("\"B\"")));
}

#[idempotent(key = "conf-after-claim:<id>", mode = "record_after", idem = idem)]
async fn beside(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn somebodys_claim_is_not_waited_for(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    s.raw.begin_by_hand("conf-after-claim:1").await;
    let claim = idem_runtime::store::NewRow { template: None, ..rows::claim(1) };
    rows::written(s.insert("conf-after-claim:2", claim).await);
    for id in [1, 2] {
        beside(id, &idem, &runs).await.expect("sent");
        let read = row(&idem, &format!("conf-after-claim:{id}")).await;
        assert_eq!((read.status, read.result), (Status::Completed, Some(id.to_string())));
    }
}
