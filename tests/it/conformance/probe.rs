//! Claims whose effect is asked about before anything runs again.

#![allow(clippy::unused_async, clippy::trivially_copy_pass_by_ref, reason = "a probe is as its job wants it")]

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use idem_runtime::{
    ErrorKind, Idem, Outcome, Probe, Record, Resolution, Status, current, idempotent, with_outcome,
    with_outcome_sync,
};
use tokio::time::timeout;

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, refused, row},
    rows::{self, HOUR},
    subject::Subject,
};

/// What a probe says, or does instead.
#[derive(Clone, Copy)]
enum Says {
    Happened(u32),
    DidNotHappen,
    Unknown,
    Panics,
    Waits,
    CallsTheJob,
}

/// A worker's jobs, whose first run fails, and what they saw.
struct Desk {
    idem: Idem,
    says: Mutex<Says>,
    runs: Runs,
    asked: Runs,
    gate: Gate,
    /// Attempt and fence of whatever ran last.
    inside: Mutex<(u32, i64)>,
    dropped: Runs,
}

/// Counts its end.
struct Trace<'a>(&'a Runs);

impl Drop for Trace<'_> {
    fn drop(&mut self) {
        self.0.enter();
    }
}

impl Desk {
    fn at(idem: Idem, says: Says) -> Arc<Self> {
        let (runs, asked, dropped) = Default::default();
        let (gate, inside) = Default::default();
        Arc::new(Self { idem, says: Mutex::new(says), runs, asked, gate, inside, dropped })
    }

    fn will_say(&self, says: Says) {
        *self.says.lock().unwrap_or_else(PoisonError::into_inner) = says;
    }

    fn saw(&self) -> (u32, i64) {
        *self.inside.lock().expect("no panic in it")
    }

    fn look(&self) {
        *self.inside.lock().expect("no panic in it") = (current().attempt(), current().fence());
    }

    async fn ask(&self, id: u32) -> Probe<u32> {
        let says = *self.says.lock().expect("no panic in it");
        let _trace = Trace(&self.dropped);
        if let Says::Waits = says {
            self.gate.pass().await;
        }
        if let Says::CallsTheJob = says {
            assert_eq!(refused(self.job(id).await), ErrorKind::Reentered);
        }
        self.answer(says)
    }

    fn answer(&self, says: Says) -> Probe<u32> {
        self.asked.enter();
        self.look();
        match says {
            Says::Happened(value) => Probe::Happened(value),
            Says::DidNotHappen => Probe::DidNotHappen,
            Says::Panics => panic!("the probe's own words"),
            Says::Unknown | Says::Waits | Says::CallsTheJob => Probe::Unknown,
        }
    }

    async fn happened(&self, id: &u32) -> Probe<u32> {
        self.ask(*id).await
    }

    #[idempotent(key = "conf-probe:<id>", on_stale = probe(Self::happened), idem = self.idem)]
    async fn job(&self, id: u32) -> Result<u32, Fault> {
        self.run()
    }

    fn run(&self) -> Result<u32, Fault> {
        self.look();
        if self.runs.enter() == 1 { body_fails("time-out") } else { Ok(current().attempt()) }
    }

    #[idempotent(key = "conf-probe-mark:<id>", on_stale = probe(Self::happened), on_error = "by_mark", idem = self.idem)]
    async fn marked(&self, id: u32) -> Result<u32, Fault> {
        current().effect_starts();
        self.run()
    }

    #[idempotent(key = "conf-probe-panic:<id>", on_stale = probe(Self::happened), idem = self.idem)]
    async fn panics(&self, id: u32) -> Result<u32, Fault> {
        self.look();
        assert!(self.runs.enter() > 1, "the body's own words");
        Ok(current().attempt())
    }

    #[idempotent(key = "conf-probe-limit:<id>", on_stale = probe(Self::happened), max_takeovers = 2, idem = self.idem)]
    async fn limited(&self, id: u32) -> Result<u32, Fault> {
        self.runs.enter();
        body_fails("time-out")
    }

    #[idempotent(key = "conf-probe-lost:<id>", on_stale = probe(Self::happened), stale_after = "1s", idem = self.idem)]
    async fn lost(&self, id: u32) -> Result<u32, Fault> {
        self.run()
    }

    #[idempotent(key = "conf-probe-lasting:<id>", on_stale = probe(Self::happened), idem = self.idem)]
    async fn lasting(&self, id: u32) -> Result<u32, Fault> {
        self.runs.enter();
        if current().attempt() == 1 {
            self.gate.pass().await;
        }
        Ok(id)
    }

    fn happened_sync(&self, id: &u32) -> Probe<u32> {
        assert!(current().key().as_str().ends_with(&format!(":{id}")));
        self.answer(*self.says.lock().expect("no panic in it"))
    }

    #[idempotent(key = "conf-probe-sync:<id>", on_stale = probe(Self::happened_sync), idem = self.idem)]
    fn plain(&self, id: u32) -> Result<u32, Fault> {
        self.run()
    }

    fn in_the_end(&self, _: &u32) -> Probe<u32> {
        while !current().is_lost() {
            std::thread::yield_now();
        }
        self.answer(*self.says.lock().expect("no panic in it"))
    }

    #[idempotent(key = "conf-probe-slow:<id>", on_stale = probe(Self::in_the_end), heartbeat = false, stale_after = "1s", idem = self.idem)]
    fn slow(&self, id: u32) -> Result<u32, Fault> {
        self.run()
    }

    async fn sent(&self, id: &u32) -> Probe<()> {
        match self.ask(*id).await {
            Probe::Happened(_) => Probe::Happened(()),
            Probe::DidNotHappen => Probe::DidNotHappen,
            Probe::Unknown => Probe::Unknown,
        }
    }

    #[idempotent(key = "conf-probe-unstored:<id>", on_stale = probe(Self::happened), replay = false, idem = self.idem)]
    async fn unstored(&self, id: u32) -> Result<u32, Fault> {
        self.run()
    }

    #[idempotent(key = "conf-probe-unit:<id>", on_stale = probe(Self::sent), idem = self.idem)]
    async fn unit(&self, id: u32) -> Result<(), Fault> {
        self.run().map(drop)
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, asked {} times", self.runs.count(), self.asked.count())
    }
}

/// A desk whose first run of a job failed, and nobody knows with what effect.
async fn held(s: &Subject, says: Says) -> Arc<Desk> {
    let desk = Desk::at(s.idem().await, says);
    assert_eq!(failed(desk.job(1).await), "time-out");
    assert_eq!((desk.asked.count(), desk.saw().0), (0, 1));
    desk
}

/// Waits until a key needs review, which nobody who could be asked waits for.
async fn turned_over(idem: &Idem, key: &str) {
    let turned_over = async {
        while row(idem, key).await.status != Status::NeedsReview {
            tokio::task::yield_now().await;
        }
    };
    timeout(HOUR / 60, turned_over).await.expect("a key that needs review");
}

/// What is recorded of an ended probe.
fn is_done(read: &Record) {
    assert_eq!((&read.status, read.attempt, read.takeovers), (&Status::Completed, 2, 1));
    assert_eq!(read.on_stale.as_deref(), Some("probe"));
}

pub(super) async fn an_effect_that_happened_completes_the_key(s: &Subject) {
    let desk = held(s, Says::Happened(7)).await;
    let (probed, outcome) = with_outcome(desk.job(1)).await;
    assert_eq!((probed.expect("found"), outcome), (7, Some(Outcome::Probed)));
    let read = row(&desk.idem, "conf-probe:1").await;
    is_done(&read);
    assert_eq!((read.result.as_deref(), read.error.as_deref()), (Some("7"), Some("time-out")));
    assert_eq!(desk.saw(), (2, read.fence), "asked under the claim that it completes");

    let (replayed, outcome) = with_outcome(desk.job(1)).await;
    assert_eq!((replayed.expect("stored"), outcome), (7, Some(Outcome::Replayed)));
    assert_eq!((desk.runs.count(), desk.asked.count()), (1, 1));
}

pub(super) async fn an_effect_that_happened_without_a_result_to_store_completes_the_key_too(s: &Subject) {
    let desk = Desk::at(s.idem().await, Says::Happened(7));
    failed(desk.unstored(1).await);
    assert_eq!(desk.unstored(1).await.expect("found"), 7);
    assert_eq!(refused(desk.unstored(1).await), ErrorKind::AlreadyCompleted);
    assert_eq!(row(&desk.idem, "conf-probe-unstored:1").await.result, None);

    let desk = Desk::at(s.idem().await, Says::Happened(7));
    failed(desk.unit(1).await);
    for outcome in [Outcome::Probed, Outcome::Replayed] {
        let (answer, found) = with_outcome(desk.unit(1)).await;
        answer.expect("found");
        assert_eq!(found, Some(outcome));
    }
}

pub(super) async fn an_effect_that_did_not_happen_happens_under_the_same_claim(s: &Subject) {
    let desk = held(s, Says::DidNotHappen).await;
    let first = row(&desk.idem, "conf-probe:1").await;
    let (ran, outcome) = with_outcome(desk.job(1)).await;
    assert_eq!((ran.expect("done"), outcome), (2, Some(Outcome::TookOver)));
    assert_eq!((desk.runs.count(), desk.asked.count()), (2, 1));
    let read = row(&desk.idem, "conf-probe:1").await;
    is_done(&read);
    assert_eq!(desk.saw(), (2, read.fence));
    assert!(read.fence > first.fence && read.owner != first.owner);
    assert_eq!(desk.job(1).await.expect("stored"), 2);
}

pub(super) async fn what_nobody_knows_waits_for_a_person_who_is_told_once(s: &Subject) {
    for says in [Says::Unknown, Says::Panics] {
        let (tell, told) = mpsc::channel();
        let hook = move |alerts: &[idem_runtime::Alert]| {
            for alert in alerts {
                tell.send((alert.key.clone(), alert.reason.clone())).expect("a listener");
            }
        };
        let elsewhere = s.empty().await;
        elsewhere.store.prepare(true).await.expect("a table");
        let idem = elsewhere.builder().on_alert(hook).connect().await.expect("an `Idem`");
        let desk = Desk::at(idem.clone(), says);
        failed(desk.job(1).await);
        if let Says::Panics = says {
            let panicking = tokio::spawn({
                let desk = Arc::clone(&desk);
                async move { desk.job(1).await }
            });
            let payload = panicking.await.expect_err("a panic").into_panic();
            assert_eq!(payload.downcast_ref::<&str>().copied(), Some("the probe's own words"));
            turned_over(&idem, "conf-probe:1").await;
        }
        for _ in 0..2 {
            let (answer, outcome) = with_outcome(desk.job(1)).await;
            let Err(Fault::Idem(error)) = answer else { panic!("a person decides: {answer:?}") };
            assert_eq!(outcome, Some(Outcome::Refused(ErrorKind::NeedsReview)));
            assert!(error.is_retryable() && error.to_string().contains("time-out"), "{error}");
        }
        let read = row(&idem, "conf-probe:1").await;
        assert_eq!((read.status, read.attempt, read.takeovers), (Status::NeedsReview, 2, 1));
        let fate = if let Says::Panics = says { "panicked" } else { "`Unknown`" };
        let error = read.error.expect("a text");
        assert!(error.contains(fate) && error.ends_with("time-out"), "{error}");
        assert_eq!((desk.runs.count(), desk.asked.count()), (1, 1), "not run, and asked once");

        let (key, reason) = told.recv_timeout(HOUR / 60).expect("an alert");
        assert_eq!(key, "conf-probe:1");
        assert!(reason.contains(fate) && reason.contains("time-out"), "{reason}");
        while row(&idem, "conf-probe:1").await.alerted_at.is_none() {
            tokio::task::yield_now().await;
        }
        idem.resolve("conf-probe:1", Resolution::Retry).note("not in the ledger").await.expect("a decision");
        assert_eq!(desk.job(1).await.expect("a person freed it"), 3);
        drop((desk, idem));
        assert_eq!(told.iter().count(), 0, "told once");
    }
}

pub(super) async fn a_probe_that_is_dropped_is_asked_again(s: &Subject) {
    for (id, key) in [(1, "conf-probe:1"), (2, "conf-probe-mark:2")] {
        let desk = Desk::at(s.idem().await, Says::Waits);
        let call = async || if id == 1 { desk.job(id).await } else { desk.marked(id).await };
        failed(call().await);
        for attempt in [2, 3] {
            tokio::select! {
                _ = call() => panic!("the gate is closed"),
                () = desk.gate.entered() => {}
            }
            let read = row(&desk.idem, key).await;
            assert_eq!((read.status, read.attempt), (Status::Processing, attempt));
            assert_eq!(read.error.as_deref(), Some("time-out"));
        }
        assert_eq!((desk.dropped.count(), desk.asked.count()), (2, 0));
        desk.will_say(Says::Happened(7));
        assert_eq!(call().await.expect("found"), 7);
        assert_eq!((desk.runs.count(), desk.asked.count()), (1, 1));
    }
}

pub(super) async fn a_call_that_is_dropped_at_any_moment_frees_no_doubtful_key(s: &Subject) {
    let desk = Desk::at(s.idem().await, Says::Unknown);
    for id in 0..24 {
        let runs = desk.runs.count();
        let moment = Duration::from_micros(u64::from(id * id) * 8);
        tokio::select! {
            _ = desk.lasting(id) => panic!("the gate is closed"),
            () = desk.gate.entered() => {}
        }
        let _ = timeout(moment, desk.lasting(id)).await;
        assert_eq!(refused(desk.lasting(id).await), ErrorKind::NeedsReview, "after {moment:?}");
        assert_eq!(desk.runs.count(), runs + 1, "after {moment:?}");
    }
}

pub(super) async fn a_probe_whose_lease_is_lost_is_dropped(s: &Subject) {
    let desk = Desk::at(s.idem().await, Says::Waits);
    failed(desk.lost(1).await);
    let dropped = desk.dropped.count();
    let (lost, decided) = tokio::join!(with_outcome(desk.lost(1)), async {
        desk.gate.entered().await;
        desk.idem.resolve("conf-probe-lost:1", Resolution::Retry).force().await
    });
    decided.expect("a decision");
    assert_eq!(
        (refused(lost.0), lost.1),
        (ErrorKind::ClaimLost, Some(Outcome::Refused(ErrorKind::ClaimLost)))
    );
    assert_eq!((desk.dropped.count(), desk.asked.count(), desk.runs.count()), (dropped + 1, 0, 1));
    assert_eq!(row(&desk.idem, "conf-probe-lost:1").await.status, Status::Released, "as the person left it");
}

pub(super) async fn a_probe_that_answers_too_late_lets_nothing_run(s: &Subject) {
    let desk = Desk::at(s.idem().await, Says::DidNotHappen);
    failed(desk.slow(1));
    let (late, outcome) = with_outcome_sync(|| desk.slow(1));
    assert_eq!(
        (refused(late), outcome),
        (ErrorKind::ClaimLost, Some(Outcome::Refused(ErrorKind::ClaimLost)))
    );
    assert_eq!((desk.runs.count(), desk.asked.count()), (1, 1));

    desk.will_say(Says::Happened(7));
    assert_eq!(desk.slow(1).expect("recorded, for nobody took the claim"), 7);
    assert_eq!((desk.runs.count(), desk.asked.count()), (1, 2));
}

pub(super) async fn a_key_that_was_asked_about_often_enough_waits_for_a_person(s: &Subject) {
    let desk = Desk::at(s.idem().await, Says::DidNotHappen);
    for _ in 0..3 {
        failed(desk.limited(1).await);
    }
    assert_eq!(refused(desk.limited(1).await), ErrorKind::NeedsReview);
    let read = row(&desk.idem, "conf-probe-limit:1").await;
    assert_eq!((desk.runs.count(), desk.asked.count(), read.takeovers), (3, 2, 2));
    assert_eq!(read.status, Status::NeedsReview);
}

pub(super) async fn a_probe_that_calls_its_own_job_is_told_so(s: &Subject) {
    let desk = held(s, Says::CallsTheJob).await;
    assert_eq!(refused(desk.job(1).await), ErrorKind::NeedsReview);
    assert_eq!((desk.runs.count(), desk.asked.count()), (1, 1));
}

pub(super) async fn a_panic_of_the_body_is_asked_about_at_once(s: &Subject) {
    let desk = Desk::at(s.idem().await, Says::Happened(7));
    let panicking = tokio::spawn({
        let desk = Arc::clone(&desk);
        async move { desk.panics(1).await }
    });
    panicking.await.expect_err("a panic");
    let (probed, outcome) = with_outcome(desk.panics(1)).await;
    assert_eq!((probed.expect("found"), outcome), (7, Some(Outcome::Probed)));
    assert_eq!(desk.runs.count(), 1);
}

pub(super) async fn plain_functions_ask_too(s: &Subject) {
    let ends = [
        (Says::Happened(7), Ok(7), Outcome::Probed, Status::Completed),
        (Says::DidNotHappen, Ok(2), Outcome::TookOver, Status::Completed),
        (
            Says::Unknown,
            Err(ErrorKind::NeedsReview),
            Outcome::Refused(ErrorKind::NeedsReview),
            Status::NeedsReview,
        ),
    ];
    for (id, (says, answer, outcome, status)) in (1..).zip(ends) {
        let desk = Desk::at(s.idem().await, says);
        failed(desk.plain(id));
        let (returned, ended) = with_outcome_sync(|| desk.plain(id));
        let returned = returned.map_err(|fault| refused::<u32>(Err(fault)));
        assert_eq!((returned, ended), (answer, Some(outcome)));
        assert_eq!(row(&desk.idem, &format!("conf-probe-sync:{id}")).await.status, status);
    }
    let desk = Desk::at(s.idem().await, Says::Panics);
    failed(desk.plain(9));
    let panicking = std::thread::scope(|scope| scope.spawn(|| desk.plain(9)).join());
    panicking.expect_err("a panic");
    turned_over(&desk.idem, "conf-probe-sync:9").await;
    assert_eq!(refused(desk.plain(9)), ErrorKind::NeedsReview);
    assert_eq!((desk.runs.count(), desk.asked.count()), (1, 1));
}

async fn asks(_: &u32) -> Probe<u32> {
    Probe::Happened(7)
}

#[idempotent(key = "conf-probe-mix:<id>", on_stale = probe(asks), idem = idem)]
async fn asking(id: u32, idem: &Idem) -> Result<u32, Fault> {
    body_fails("asking")
}

#[idempotent(key = "conf-probe-mix:<id>", on_stale = "retry", on_error = "hold", idem = idem, allow_overlap(asking))]
async fn retrying(id: u32, idem: &Idem) -> Result<u32, Fault> {
    body_fails("retrying")
}

#[idempotent(key = "conf-probe-mix:<id>", idem = idem, allow_overlap(asking, retrying))]
async fn alerting(id: u32, idem: &Idem) -> Result<u32, Fault> {
    body_fails("alerting")
}

pub(super) async fn of_the_rows_policy_and_the_calls_the_stricter_holds(s: &Subject) {
    let idem = s.idem().await;
    failed(asking(1, &idem).await);
    assert_eq!(refused(retrying(1, &idem).await), ErrorKind::NeedsReview, "it cannot ask");
    failed(asking(2, &idem).await);
    assert_eq!(refused(alerting(2, &idem).await), ErrorKind::NeedsReview);
    failed(alerting(3, &idem).await);
    assert_eq!(refused(asking(3, &idem).await), ErrorKind::NeedsReview);
    failed(retrying(4, &idem).await);
    assert_eq!(asking(4, &idem).await.expect("found"), 7);
    assert_eq!(row(&idem, "conf-probe-mix:4").await.on_stale.as_deref(), Some("probe"));
}

pub(super) async fn a_dead_workers_claim_is_asked_about_once_it_is_stale(s: &Subject) {
    let idem = s.idem().await;
    let claim =
        idem_runtime::store::NewRow { template: None, on_stale: Some("probe".to_owned()), ..rows::claim(1) };
    rows::written(s.insert("conf-probe-mix:1", claim).await);
    assert_eq!(refused(asking(1, &idem).await), ErrorKind::InProgress, "it may be alive");
    s.raw.end_lease("conf-probe-mix:1").await;
    assert_eq!(asking(1, &idem).await.expect("found"), 7);
    is_done(&row(&idem, "conf-probe-mix:1").await);
}

pub(super) async fn a_claim_without_owner_is_not_asked_about(s: &Subject) {
    let idem = s.idem().await;
    s.raw.begin_by_hand("conf-probe-mix:1").await;
    s.raw.age("conf-probe-mix:1", Duration::from_mins(16)).await;
    assert_eq!(refused(asking(1, &idem).await), ErrorKind::NeedsReview);
    assert_eq!(s.row("conf-probe-mix:1").await.status, Status::NeedsReview);
}
