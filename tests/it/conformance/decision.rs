//! Every row that a call can meet: the answer is the decision table's.

use idem_runtime::{
    ErrorKind, Idem, Job, Outcome, Probe, Status, idempotent,
    record::{Decision, Standing, Terms, decide},
    store::{Moment, NewRow},
    with_outcome,
};

use super::{
    call::{Fault, Runs},
    foreign::terms,
    rows::{self, HOUR, PAST, at_rest, written},
    subject::Subject,
};

#[idempotent(key = "conf-meets-retry:<id>", on_stale = "retry", fingerprint = (amount), idem = idem)]
async fn retries(id: usize, amount: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(amount)
}

#[idempotent(key = "conf-meets-alert:<id>", fingerprint = (amount), idem = idem)]
async fn alerts(id: usize, amount: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(amount)
}

#[idempotent(key = "conf-meets-probe:<id>", on_stale = probe(free), fingerprint = (amount), idem = idem)]
async fn asks(id: usize, amount: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(amount)
}

#[allow(clippy::unused_async, reason = "a probe is as its job wants it")]
async fn free(_: &usize) -> Probe<u32> {
    Probe::DidNotHappen
}

#[idempotent(key = "conf-meets-after:<id>", mode = "record_after", fingerprint = (amount), idem = idem)]
async fn records(id: usize, amount: u32, idem: &Idem, runs: &Runs) -> Result<u32, Fault> {
    runs.enter();
    Ok(amount)
}

fn job(name: &str) -> &'static Job {
    let path = format!("{}::{name}", module_path!());
    idem_runtime::jobs::all().find(|job| job.path() == path).expect("a registered job")
}

fn rows_to_meet(job: &Job, fingerprint: &str) -> Vec<NewRow> {
    let mut all = Vec::new();
    for word in ["processing", "completed", "failed", "released", "needs_review", "paused"] {
        let status = Status::from(word);
        let ended = [Status::Completed, Status::Failed].contains(&status);
        let claimed = status == Status::Processing;
        let expiries: &[Moment] =
            if ended { &[Moment::Never, Moment::In(HOUR), Moment::At(PAST)] } else { &[Moment::Never] };
        let leases: &[Moment] =
            if claimed { &[Moment::Never, Moment::In(HOUR), Moment::At(PAST)] } else { &[Moment::Never] };
        let owners: &[bool] = if claimed { &[true, false] } else { &[true] };
        let policies: &[&str] =
            if claimed { &["retry", "probe", "alert", "a word of tomorrow"] } else { &["retry"] };
        for (expires, lease) in
            expiries.iter().flat_map(|expires| leases.iter().map(move |lease| (*expires, *lease)))
        {
            for (owned, policy) in
                owners.iter().flat_map(|owned| policies.iter().map(move |policy| (*owned, *policy)))
            {
                for (print, template) in [
                    (None, None),
                    (Some(fingerprint), Some(job.shape())),
                    (Some("other"), None),
                    (None, Some("a:<>")),
                ] {
                    all.push(NewRow {
                        status: status.clone(),
                        template: template.map(ToOwned::to_owned),
                        mode: Some(job.mode().as_str().to_owned()),
                        on_stale: Some(policy.to_owned()),
                        owner: owned.then(|| rows::owner(1)),
                        lease,
                        expires,
                        fingerprint: print.map(ToOwned::to_owned),
                        result: ended.then(|| "7".to_owned()),
                        ..rows::claim(1)
                    });
                }
            }
        }
    }
    all
}

fn answer(decision: &Decision) -> Outcome {
    match decision {
        Decision::Run(Standing::Stale | Standing::Doubtful) => Outcome::TookOver,
        Decision::Run(_) => Outcome::Executed,
        Decision::Replay => Outcome::Replayed,
        Decision::Conflict { .. } => Outcome::Refused(ErrorKind::KeyConflict),
        Decision::Mismatch => Outcome::Refused(ErrorKind::FingerprintMismatch),
        Decision::Busy { .. } => Outcome::Refused(ErrorKind::InProgress),
        Decision::Flag | Decision::Review => Outcome::Refused(ErrorKind::NeedsReview),
        Decision::Failed => Outcome::Refused(ErrorKind::PreviouslyFailed),
    }
}

pub(super) async fn every_row_is_answered_as_the_decision_table_says(s: &Subject) {
    let idem = s.idem().await;
    for name in ["retries", "alerts", "asks", "records"] {
        let job = job(name);
        let runs = Runs::default();
        let call = async |id: usize| match name {
            "retries" => with_outcome(retries(id, 7, &idem, &runs)).await.1,
            "alerts" => with_outcome(alerts(id, 7, &idem, &runs)).await.1,
            "asks" => with_outcome(asks(id, 7, &idem, &runs)).await.1,
            _ => with_outcome(records(id, 7, &idem, &runs)).await.1,
        };
        let key = |id: usize| job.template()[0].to_owned() + &id.to_string();
        call(0).await;
        let fingerprint = s.row(&key(0)).await.fingerprint.expect("a fingerprint");

        for (id, row) in (1..).zip(rows_to_meet(job, &fingerprint)) {
            written(s.insert(&key(id), row).await);
            let met = s.row(&key(id)).await;
            let terms = Terms { fingerprint: Some(&fingerprint), ..terms(job) };
            let decision = decide(Some(&met), met.now, &terms);
            let before = runs.count();
            assert_eq!(call(id).await, Some(answer(&decision)), "{job:?} met {met:#?}");

            let after = s.row(&key(id)).await;
            let ran = matches!(decision, Decision::Run(_));
            assert_eq!(runs.count() - before, usize::from(ran), "{met:#?}");
            match decision {
                Decision::Run(_) => {
                    assert_eq!((after.status, after.result.as_deref()), (Status::Completed, Some("7")));
                }
                Decision::Flag => assert_eq!(after.status, Status::NeedsReview),
                _ => assert_eq!(at_rest(after), at_rest(met)),
            }
        }
    }
}
