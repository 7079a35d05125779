//! Keys that somebody holds.

use std::time::Duration;

use idem_runtime::{ErrorKind, Idem, Outcome, idempotent, with_outcome};

use super::{
    call::{Fault, Gate, Runs, refused, row},
    subject::Subject,
};

#[idempotent(key = "conf-busy:<id>", idem = idem)]
async fn holds(id: u32, idem: &Idem, gate: &Gate, runs: &Runs) -> Result<usize, Fault> {
    let nth = runs.enter();
    gate.pass().await;
    Ok(nth)
}

pub(super) async fn a_busy_key_is_an_error_that_says_when(s: &Subject) {
    let (idem, other) = (s.idem().await, s.idem().await);
    let (gate, runs) = (Gate::default(), Runs::default());
    let (first, ()) = tokio::join!(holds(1, &idem, &gate, &runs), async {
        gate.entered().await;
        let before = row(&idem, "conf-busy:1").await;
        for caller in [&idem, &other] {
            let Err(Fault::Idem(error)) = holds(1, caller, &gate, &runs).await else { panic!("it is held") };
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InProgress, true));
            let left = error.retry_after().expect("a time");
            assert!(left <= Duration::from_mins(1) && left > Duration::from_secs(30), "{left:?}");
        }
        assert_eq!(row(&idem, "conf-busy:1").await, before);
        gate.open();
    });
    assert_eq!((first.expect("done"), runs.count()), (1, 1));
}

#[idempotent(key = "conf-wait:<id>", on_busy = "wait", wait_for = "30s", idem = idem)]
async fn waits(id: u32, idem: &Idem, gate: &Gate, runs: &Runs) -> Result<usize, Fault> {
    let nth = runs.enter();
    gate.pass().await;
    Ok(nth)
}

pub(super) async fn a_call_that_waits_gets_the_firsts_result(s: &Subject) {
    let (idem, other) = (s.idem().await, s.idem().await);
    let (gate, runs) = (Gate::default(), Runs::default());
    let (first, second, ()) = tokio::join!(
        waits(1, &idem, &gate, &runs),
        async {
            while runs.count() == 0 {
                tokio::task::yield_now().await;
            }
            with_outcome(waits(1, &other, &gate, &runs)).await
        },
        async {
            gate.entered().await;
            // So that the second has met the first's claim; nothing depends on it but what is tried.
            tokio::time::sleep(Duration::from_millis(50)).await;
            gate.open();
        }
    );
    assert_eq!(first.expect("done"), 1);
    assert_eq!((second.0.expect("replayed"), second.1), (1, Some(Outcome::Replayed)));
    assert_eq!(runs.count(), 1);
}

#[idempotent(key = "conf-wait-short:<id>", on_busy = "wait", wait_for = "1s", idem = idem)]
async fn waits_shortly(id: u32, idem: &Idem, gate: &Gate, runs: &Runs) -> Result<usize, Fault> {
    let nth = runs.enter();
    gate.pass().await;
    Ok(nth)
}

pub(super) async fn a_wait_ends(s: &Subject) {
    let (idem, other) = (s.idem().await, s.idem().await);
    let (gate, runs) = (Gate::default(), Runs::default());
    let (first, ()) = tokio::join!(waits_shortly(1, &idem, &gate, &runs), async {
        gate.entered().await;
        assert_eq!(refused(waits_shortly(1, &other, &gate, &runs).await), ErrorKind::InProgress);
        gate.open();
    });
    assert_eq!((first.expect("done"), runs.count()), (1, 1));
}

#[idempotent(key = "conf-again:<id>", on_busy = "wait", idem = idem)]
async fn calls_itself(id: u32, deep: bool, idem: &Idem) -> Result<(), Fault> {
    if !deep {
        let inner = Box::pin(calls_itself(id, true, idem)).await;
        assert_eq!(refused(inner), ErrorKind::Reentered, "before any wait");
    }
    Ok(())
}

pub(super) async fn a_job_that_calls_itself_is_told_so(s: &Subject) {
    let idem = s.idem().await;
    calls_itself(1, false, &idem).await.expect("the outer claim is intact");
}
