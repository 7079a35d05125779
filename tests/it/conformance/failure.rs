//! Bodies that do not return a value.

use std::{sync::Arc, time::Duration};

use idem_runtime::{ErrorKind, Idem, OnError, Outcome, Status, current, idempotent, with_outcome};

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, refused, row},
    subject::Subject,
};

#[idempotent(key = "conf-release:<id>", on_error = "release", idem = idem)]
async fn releases(id: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    if runs.enter() == 1 { body_fails("no such card") } else { Ok(current().attempt()) }
}

pub(super) async fn a_released_key_runs_again_at_once_with_its_history(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    assert_eq!(failed(releases(1, &idem, &runs).await), "no such card");
    let released = row(&idem, "conf-release:1").await;
    assert_eq!((released.status, released.error.as_deref()), (Status::Released, Some("no such card")));
    let (again, outcome) = with_outcome(releases(1, &s.idem().await, &runs)).await;
    assert_eq!((again.expect("done"), outcome), (2, Some(Outcome::Executed)));
    let done = row(&idem, "conf-release:1").await;
    assert_eq!((done.attempt, done.takeovers, done.error.as_deref()), (2, 0, Some("no such card")));
    assert!(done.fence > released.fence);
}

#[idempotent(key = "conf-mark:<id>", on_error = "by_mark", idem = idem)]
async fn marks(id: u32, marked: bool, idem: &Idem) -> Result<(), Fault> {
    if marked {
        current().effect_starts();
    }
    body_fails("time-out")
}

pub(super) async fn an_error_before_the_mark_releases_and_after_it_holds(s: &Subject) {
    let idem = s.idem().await;
    for _ in 0..2 {
        failed(marks(1, false, &idem).await);
        assert_eq!(row(&idem, "conf-mark:1").await.status, Status::Released);
    }
    failed(marks(1, true, &idem).await);
    assert_eq!(row(&idem, "conf-mark:1").await.status, Status::Processing);
    assert_eq!(refused(marks(1, false, &idem).await), ErrorKind::NeedsReview);
}

#[idempotent(key = "conf-record:<id>", on_error = "record", idem = idem)]
async fn records(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    body_fails("card stolen")
}

pub(super) async fn a_recorded_failure_is_what_repeats_get(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(records(1, &idem, &runs).await);
    let Err(Fault::Idem(error)) = records(1, &s.idem().await, &runs).await else {
        panic!("it failed for good")
    };
    assert_eq!(error.kind(), ErrorKind::PreviouslyFailed);
    assert!(!error.is_retryable() && error.to_string().contains("card stolen"), "{error}");
    assert_eq!((runs.count(), row(&idem, "conf-record:1").await.status), (1, Status::Failed));
}

fn judge(fault: &Fault) -> OnError {
    match fault {
        Fault::Body(text) if text.starts_with("never") => OnError::Record,
        Fault::Body(text) if text.starts_with("not yet") => OnError::Release,
        _ => OnError::Hold,
    }
}

#[idempotent(key = "conf-judge:<id>", on_error = judge, idem = idem)]
async fn judged(id: u32, text: &str, idem: &Idem) -> Result<(), Fault> {
    body_fails(text)
}

pub(super) async fn a_function_judges_each_error(s: &Subject) {
    let idem = s.idem().await;
    let ends = [
        (1, "never", Status::Failed, ErrorKind::PreviouslyFailed),
        (2, "nobody knows", Status::Processing, ErrorKind::NeedsReview),
    ];
    for (id, text, status, answer) in ends {
        failed(judged(id, text, &idem).await);
        assert_eq!(row(&idem, &format!("conf-judge:{id}")).await.status, status, "{text}");
        assert_eq!(refused(judged(id, text, &idem).await), answer, "{text}");
    }
    for _ in 0..2 {
        failed(judged(3, "not yet", &idem).await);
        assert_eq!(row(&idem, "conf-judge:3").await.status, Status::Released);
    }
}

pub(super) async fn any_error_text_is_recorded_cut_and_cleaned(s: &Subject) {
    let idem = s.idem().await;
    let ends =
        [("never", Status::Failed), ("not yet", Status::Released), ("nobody knows", Status::Processing)];
    for (id, (kind, status)) in (10..).zip(ends) {
        let text = format!("{kind}\0\u{1f600}{}", "\u{e9}".repeat(500_000));
        assert_eq!(failed(judged(id, &text, &idem).await), text, "the caller gets its own");
        let read = row(&idem, &format!("conf-judge:{id}")).await;
        assert_eq!(read.status, status, "{kind}");
        let error = read.error.expect("a text");
        assert!(error.starts_with(kind) && error.len() < 65_536 && !error.contains('\0'), "{}", error.len());
    }
}

#[idempotent(key = "conf-panic:<id>", idem = idem)]
async fn panics(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    assert!(runs.enter() > 1, "the user's own words");
    Ok(())
}

#[idempotent(key = "conf-panic-mark:<id>", on_error = "by_mark", idem = idem)]
async fn panics_unmarked(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    assert!(runs.enter() > 1, "the user's own words");
    Ok(())
}

pub(super) async fn a_panic_holds_and_goes_on_to_the_caller(s: &Subject) {
    let (idem, runs) = (s.idem().await, Arc::new(Runs::default()));
    let panicking = tokio::spawn({
        let (idem, runs) = (idem.clone(), Arc::clone(&runs));
        async move { panics(1, &idem, &runs).await }
    });
    let payload = panicking.await.expect_err("a panic").into_panic();
    assert_eq!(payload.downcast_ref::<&str>().copied(), Some("the user's own words"));
    assert_eq!(refused(panics(1, &idem, &runs).await), ErrorKind::NeedsReview);
    assert_eq!(runs.count(), 1);
}

pub(super) async fn a_panic_before_the_mark_releases(s: &Subject) {
    let (idem, runs) = (s.idem().await, Arc::new(Runs::default()));
    let panicking = tokio::spawn({
        let (idem, runs) = (idem.clone(), Arc::clone(&runs));
        async move { panics_unmarked(1, &idem, &runs).await }
    });
    panicking.await.expect_err("a panic");
    panics_unmarked(1, &idem, &runs).await.expect("runs again");
    assert_eq!(runs.count(), 2);
}

#[idempotent(key = "conf-drop:<id>", on_stale = "retry", on_error = "hold", idem = idem)]
async fn dropped(id: u32, idem: &Idem, gate: Option<&Gate>, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    if let Some(gate) = gate {
        gate.pass().await;
    }
    Ok(current().attempt())
}

pub(super) async fn a_body_that_is_dropped_half_way_leaves_a_stale_claim(s: &Subject) {
    let (idem, gate, runs) = (s.idem().await, Gate::default(), Runs::default());
    tokio::select! {
        _ = dropped(1, &idem, Some(&gate), &runs) => panic!("the gate is closed"),
        () = gate.entered() => {}
    }
    let (again, outcome) = with_outcome(dropped(1, &idem, None, &runs)).await;
    assert_eq!((again.expect("done"), outcome), (2, Some(Outcome::TookOver)));
    assert_eq!(runs.count(), 2);
}

#[idempotent(key = "conf-early:<id>", idem = idem)]
async fn dropped_early(id: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(current().attempt())
}

pub(super) async fn a_call_that_is_dropped_before_its_body_leaves_the_key_free(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    for id in 0..16 {
        let (early, before) = (Duration::from_micros(u64::from(id) * 40), runs.count());
        let _ = tokio::time::timeout(early, dropped_early(id, &idem, &runs)).await;
        let ran = runs.count() > before;
        // Whatever it had begun: it ran to its end, or it counts as no attempt and stands in nobody's way.
        let attempt = dropped_early(id, &idem, &runs).await.expect("done or replayed");
        assert_eq!((attempt, runs.count() - before), (1, 1), "ran {ran}, after {early:?}");
    }
}

#[idempotent(key = "conf-inside:<id>", idem = idem)]
async fn knows_itself(id: u32, idem: &Idem) -> Result<(String, String, i64, u32), Fault> {
    let inside = current();
    Ok((inside.key().to_string(), inside.derived_key("stripe"), inside.fence(), inside.attempt()))
}

pub(super) async fn a_body_knows_its_key_and_its_fence(s: &Subject) {
    let idem = s.idem().await;
    let (key, derived, fence, attempt) = knows_itself(1, &idem).await.expect("done");
    let read = row(&idem, "conf-inside:1").await;
    assert_eq!((key.as_str(), fence, attempt), ("conf-inside:1", read.fence, 1));
    assert_eq!((derived.len(), read.attempt), (32, 1));
}

#[idempotent(key = "conf-sync:<id>", idem = idem)]
fn in_plain_code(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn a_plain_function_runs_once_too(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    assert_eq!(in_plain_code(1, &idem, &runs).expect("done"), 1);
    let again = std::thread::scope(|scope| scope.spawn(|| in_plain_code(1, &idem, &runs)).join());
    assert_eq!(again.expect("no panic").expect("replayed"), 1);
}
