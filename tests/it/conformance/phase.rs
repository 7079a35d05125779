//! Rows of phases: written under the claim of their job, and found behind it in the order of keys.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use idem_runtime::{
    TransactDatabase,
    record::{Record, Status},
    store::{
        Answer, Audit, Ending, Finish, Insert, Moment, NewRow, PhaseDeed, PhaseWrite, Renew, Replace, Store,
    },
};
use sqlx::Connection;
use tokio::time::timeout;

use super::{
    raw::Raw,
    rows::{self, HOUR, at_rest, found, written},
    subject::{self, Subject, answered, race},
};

/// What a phase's write says of the job whose execution `n` it belongs to: with a longer lease than a claim has.
pub(super) fn under(job: &str, n: u8, fence: i64) -> Renew {
    Renew { key: job.into(), owner: rows::owner(n), fence, lease: HOUR }
}

pub(super) fn insert(job: &Renew, name: &str, row: NewRow) -> PhaseWrite {
    let key = format!("{}/{name}", job.key).into();
    PhaseWrite { job: job.clone(), deed: PhaseDeed::Insert(Box::new(Insert { key, row })) }
}

fn replace(job: &Renew, replace: Replace) -> PhaseWrite {
    PhaseWrite { job: job.clone(), deed: PhaseDeed::Replace(Box::new(replace)) }
}

pub(super) fn finish(job: &Renew, name: &str, n: u8, fence: i64, ending: Ending) -> PhaseWrite {
    let key = format!("{}/{name}", job.key);
    PhaseWrite { job: job.clone(), deed: PhaseDeed::Finish(subject::finish(&key, n, fence, ending)) }
}

pub(super) async fn send(s: &Subject, write: &PhaseWrite) -> Answer {
    let answers = s.store.phase(std::slice::from_ref(write)).await.expect("an answer");
    let [answer] = answers.try_into().expect("one answer for one item");
    answer
}

/// A claim of execution `n`, and a phase of it.
async fn claimed(s: &Subject, job: &str, n: u8, name: &str) -> Renew {
    let job = under(job, n, s.claim(job, n).await);
    assert_eq!(written(send(s, &insert(&job, name, rows::claim(n))).await), job.fence);
    job
}

/// A phase's row, where it is there.
async fn phase(s: &Subject, job: &Renew, name: &str) -> Option<Record> {
    s.read(&format!("{}/{name}", job.key)).await
}

/// Every kind of write there is to the phase `x`, which is claimed, and to `y`, which is not.
async fn every_write(s: &Subject, job: &Renew, n: u8) -> Vec<PhaseWrite> {
    let row = phase(s, job, "x").await.expect("the phase's row");
    let mut writes = vec![
        insert(job, "y", rows::claim(n)),
        insert(job, "y", rows::in_state(Status::Completed, n)),
        replace(job, rows::takeover(&row, 9)),
        replace(job, rows::restated(&row, Status::NeedsReview)),
    ];
    let endings = [rows::completed(Some("1")), rows::failed("no"), rows::released(None), rows::held(None)];
    let owner = row.owner.expect("an owner");
    writes.extend(endings.into_iter().map(|ending| {
        let finish = Finish { key: row.key.as_str().into(), owner: owner.clone(), fence: row.fence, ending };
        PhaseWrite { job: job.clone(), deed: PhaseDeed::Finish(finish) }
    }));
    writes
}

/// Every row of the table, as far as these cases write there.
async fn all(s: &Subject) -> Vec<Record> {
    let rows = s.store.between("", "~", 1000).await.expect("rows");
    rows.into_iter().map(at_rest).collect()
}

fn changed(record: &Record, change: impl FnOnce(&mut Record)) -> Record {
    let mut record = record.clone();
    change(&mut record);
    record
}

async fn none_counts(s: &Subject, job: &Renew) {
    let before = all(s).await;
    let writes = every_write(s, job, 1).await;
    for write in &writes {
        assert_eq!(send(s, write).await, Answer::Gone, "{write:?}");
        assert_eq!(all(s).await, before, "{write:?}");
    }
}

pub(super) async fn a_phase_is_claimed_under_the_claim_of_its_job(s: &Subject) {
    let fence = s.claim("billing:1", 1).await;
    let before = s.row("billing:1").await;
    let job = under("billing:1", 1, fence);
    let row =
        NewRow { fingerprint: Some("another".to_owned()), error: Some("no".to_owned()), ..rows::claim(2) };
    let write = insert(&job, "charge", row.clone());
    assert_eq!(send(s, &write).await, Answer::Written { fence }, "the job's fence");

    let charge = s.row("billing:1/charge").await;
    assert_eq!((&charge.owner, charge.fence), (&row.owner, fence));
    assert_eq!(charge.fingerprint, Some(before.created_at.to_string()), "the life of the job");
    assert_eq!((&charge.status, &charge.error, &charge.worker), (&row.status, &row.error, &row.worker));
    assert_eq!((charge.attempt, charge.completed_at, charge.expires_at), (1, None, None));
    assert!(charge.lease_until > Some(charge.now) && charge.created_at >= before.created_at, "{charge:?}");

    let after = s.row("billing:1").await;
    let left = after.lease_until.expect("a lease") - after.now;
    assert!((3_590_000_000..=3_600_000_000).contains(&left), "its lease runs anew: {left}");
    assert_eq!(
        changed(&at_rest(after), |row| row.lease_until = before.lease_until),
        at_rest(before),
        "and nothing else"
    );
}

pub(super) async fn a_phase_can_begin_completed(s: &Subject) {
    let job = under("billing:1", 1, s.claim("billing:1", 1).await);
    let row = NewRow {
        result: Some("7".to_owned()),
        expires: Moment::In(HOUR),
        ..rows::in_state(Status::Completed, 1)
    };
    written(send(s, &insert(&job, "mail", row)).await);
    let mail = s.row("billing:1/mail").await;
    assert_eq!((&mail.status, mail.result.as_deref()), (&Status::Completed, Some("7")));
    assert!(mail.completed_at.is_some() && mail.expires_at > Some(mail.now), "{mail:?}");
}

pub(super) async fn a_phase_that_is_there_is_found(s: &Subject) {
    let job = claimed(s, "billing:1", 1, "charge").await;
    let charge = at_rest(s.row("billing:1/charge").await);
    assert_eq!(at_rest(found(send(s, &insert(&job, "charge", rows::claim(2))).await)), charge);
    assert_eq!(at_rest(s.row("billing:1/charge").await), charge);

    let other = changed(&charge, |row| row.status = Status::Released);
    let other = replace(&job, rows::takeover(&other, 3));
    assert_eq!(at_rest(found(send(s, &other).await)), charge);
    let late = finish(&job, "charge", 2, job.fence, rows::completed(None));
    assert_eq!(at_rest(found(send(s, &late).await)), charge);
    assert_eq!(at_rest(s.row("billing:1/charge").await), charge);

    let absent = rows::takeover(&changed(&charge, |row| row.key.replace_range(.., "billing:1/mail")), 3);
    assert_eq!(send(s, &replace(&job, absent)).await, Answer::Gone);
    let absent = finish(&job, "mail", 1, job.fence, rows::completed(None));
    assert_eq!(send(s, &absent).await, Answer::Gone);
}

pub(super) async fn a_phase_is_replaced_under_the_claim_of_its_job(s: &Subject) {
    let first = claimed(s, "billing:1", 1, "charge").await;
    let held = finish(&first, "charge", 1, first.fence, rows::held(Some("time-out")));
    assert_eq!(written(send(s, &held).await), first.fence + 1);
    // Another life of the job, and its fence above the phase's.
    s.raw.end_lease("billing:1").await;
    let life = Replace { renew_birth: true, ..rows::takeover(&s.row("billing:1").await, 2) };
    let second = under("billing:1", 2, written(s.replace(&life).await));
    let job = at_rest(s.row("billing:1").await);
    let row = s.row("billing:1/charge").await;
    let audit = Audit {
        actor: "ops".to_owned(),
        from_status: "processing".to_owned(),
        to_status: "processing".to_owned(),
        note: "because".to_owned(),
        old_result: None,
    };
    for (raise_fence, audit) in [(true, Some(audit)), (false, None)] {
        let row = s.row("billing:1/charge").await;
        let taken = Replace { raise_fence, audit, ..rows::takeover(&row, 2) };
        assert_eq!(written(send(s, &replace(&second, taken)).await), second.fence, "the job's");
    }
    let taken = s.row("billing:1/charge").await;
    assert_eq!((&taken.owner, taken.attempt), (&Some(rows::owner(2)), 3));
    assert_eq!(taken.fingerprint, Some(job.created_at.to_string()), "of its present life");
    assert_eq!(taken.created_at, row.created_at);
    assert_eq!(s.raw.audit("billing:1/charge").await, [["ops", "processing", "processing", "because", ""]]);
    assert!(s.row("billing:1").await.lease_until > job.lease_until, "its lease runs anew");

    // Above the job's fence a phase's own stays.
    let held = finish(&second, "charge", 2, second.fence, rows::held(None));
    assert_eq!(written(send(s, &held).await), second.fence + 1);
    for raise_fence in [true, false] {
        let row = s.row("billing:1/charge").await;
        let reborn = Replace { raise_fence, renew_birth: true, ..rows::takeover(&row, 3) };
        assert_eq!(written(send(s, &replace(&second, reborn)).await), second.fence + 1);
        assert!(s.row("billing:1/charge").await.created_at >= row.created_at);
    }
}

pub(super) async fn a_phase_ends_under_the_claim_of_its_job(s: &Subject) {
    let endings = [
        rows::completed(Some("{\"a\":1}")),
        Ending::Completed { result: None, ttl: Some(HOUR) },
        rows::failed("no"),
        rows::released(Some("no")),
        Ending::Released { error: None, purge_after: None, withdrawn: true },
        rows::held(Some("time-out")),
    ];
    for (n, ending) in (1..).zip(endings) {
        let key = format!("billing:{n}");
        let job = claimed(s, &key, n, "charge").await;
        let charged = s.row(&format!("{key}/charge")).await;
        s.raw.end_lease(&key).await;
        let ended = finish(&job, "charge", n, job.fence, ending.clone());
        let alone = claimed(s, &format!("{key}:alone"), n, "charge").await;
        let [fence, right] = [
            written(send(s, &ended).await) - job.fence,
            written(s.finish(&format!("{key}:alone/charge"), n, alone.fence, ending).await) - alone.fence,
        ];
        assert_eq!(fence, right, "{ended:?}");
        let [read, like] =
            [s.row(&format!("{key}/charge")).await, s.row(&format!("{key}:alone/charge")).await];
        assert_eq!(read.fingerprint, charged.fingerprint);
        let [read, like] =
            [read, like].map(|record| rows::shape(&changed(&record, |row| row.fingerprint = None)));
        assert_eq!(read, like, "as any other row ends: {ended:?}");
        let job = s.row(&key).await;
        assert!(job.lease_until > Some(job.now), "its lease runs anew: {job:?}");
    }
}

pub(super) async fn nothing_counts_under_a_claim_that_was_taken_over(s: &Subject) {
    let job = claimed(s, "billing:1", 1, "x").await;
    s.raw.end_lease("billing:1").await;
    written(s.replace(&rows::takeover(&s.row("billing:1").await, 2)).await);
    none_counts(s, &job).await;
}

pub(super) async fn nothing_counts_under_a_claim_that_ended(s: &Subject) {
    for (n, ending) in (1..).zip([rows::completed(None), rows::failed("no"), rows::held(None)]) {
        let key = format!("billing:{n}");
        let job = claimed(s, &key, 1, "x").await;
        written(s.finish(&key, 1, job.fence, ending).await);
        none_counts(s, &job).await;
    }
}

pub(super) async fn nothing_counts_under_a_claim_of_another_name_or_fence(s: &Subject) {
    let job = claimed(s, "billing:1", 1, "x").await;
    none_counts(s, &Renew { owner: rows::owner(2), ..job.clone() }).await;
    none_counts(s, &Renew { fence: job.fence - 1, ..job.clone() }).await;
    none_counts(s, &Renew { fence: job.fence + 1, ..job.clone() }).await;
}

pub(super) async fn nothing_counts_under_a_job_that_is_gone(s: &Subject) {
    let job = claimed(s, "billing:1", 1, "x").await;
    let row = s.row("billing:1").await;
    // Its phases go with it, so that the one row that is left over is one that nobody wrote under a claim.
    assert!(s.store.forget("billing:1", &row.version(), &super::fence::forgotten()).await.expect("a reply"));
    written(s.insert("billing:1/x", rows::claim(1)).await);
    none_counts(s, &job).await;
}

pub(super) async fn everything_counts_under_review(s: &Subject) {
    let mut at = 0;
    loop {
        let key = format!("billing:{at}");
        let job = claimed(s, &key, 1, "x").await;
        s.raw.end_lease(&key).await;
        written(s.replace(&rows::restated(&s.row(&key).await, Status::NeedsReview)).await);
        let writes = every_write(s, &job, 1).await;
        let Some(write) = writes.get(at) else { break };
        written(send(s, write).await);
        let job = s.row(&key).await;
        assert_eq!(job.status, Status::NeedsReview);
        assert!(job.lease_until > Some(job.now), "its lease runs anew: {job:?}");
        at += 1;
    }
    assert_eq!(at, 8);
}

pub(super) async fn endings_alone_count_once_a_person_has_released_the_key(s: &Subject) {
    let mut at = 0;
    let mut counted = Vec::new();
    loop {
        let key = format!("billing:{at}");
        let job = claimed(s, &key, 1, "x").await;
        let released = Replace {
            row: NewRow { status: Status::Released, lease: Moment::Never, ..rows::again(&s.row(&key).await) },
            ..rows::restated(&s.row(&key).await, Status::Released)
        };
        written(s.replace(&released).await);
        let before = at_rest(s.row(&key).await);
        let writes = every_write(s, &job, 1).await;
        let Some(write) = writes.get(at) else { break };
        match send(s, write).await {
            Answer::Written { .. } => counted.push(write.status()),
            Answer::Gone => assert_eq!(write.status(), Status::Processing, "{write:?}"),
            Answer::Found(row) => panic!("{row:?}"),
        }
        assert_eq!(at_rest(s.row(&key).await), before, "the key stays free");
        at += 1;
    }
    let words: Vec<_> = counted.iter().map(Status::as_str).collect();
    assert_eq!(words, ["completed", "needs_review", "completed", "failed", "released"]);
}

pub(super) async fn a_lost_reply_of_a_phase_is_recognised(s: &Subject) {
    let job = claimed(s, "billing:1", 1, "x").await;
    let claim = insert(&job, "x", rows::claim(1));
    let taken = replace(&job, rows::takeover(&s.row("billing:1/x").await, 2));
    let ended = finish(&job, "x", 2, job.fence, rows::completed(Some("1")));
    for write in [claim, taken, ended] {
        let fence = written(send(s, &write).await);
        let before = at_rest(s.row("billing:1/x").await);
        assert_eq!(written(send(s, &write).await), fence, "{write:?}");
        assert_eq!(at_rest(s.row("billing:1/x").await), before, "done once: {write:?}");
    }
}

pub(super) async fn a_batch_holds_several_phases_of_one_job(s: &Subject) {
    let job = claimed(s, "billing:1", 1, "b").await;
    let other = claimed(s, "billing:0", 2, "b").await;
    let batch = [
        insert(&job, "z", rows::claim(1)),
        finish(&other, "b", 2, other.fence, rows::completed(Some("2"))),
        finish(&job, "b", 1, job.fence, rows::completed(Some("1"))),
        insert(&job, "a", rows::in_state(Status::Completed, 1)),
        insert(&job, "a-", rows::claim(1)),
    ];
    let fences = [job.fence, other.fence, job.fence, job.fence, job.fence];
    for (answer, fence) in s.store.phase(&batch).await.expect("answers").into_iter().zip(fences) {
        assert_eq!(answer, Answer::Written { fence });
    }
    let read = s.store.between("billing:1/", "billing:10", 10).await.expect("rows");
    let read: Vec<_> = read.iter().map(|row| (row.key.as_str(), row.status.as_str())).collect();
    let right = [("a", "completed"), ("a-", "processing"), ("b", "completed"), ("z", "processing")];
    assert_eq!(
        read,
        right
            .map(|(name, status)| (format!("billing:1/{name}"), status))
            .each_ref()
            .map(|(key, status)| (key.as_str(), *status))
    );
    assert_eq!(s.row("billing:0/b").await.result.as_deref(), Some("2"));
    assert_eq!(s.store.phase(&[]).await.expect("answers"), []);
}

pub(super) async fn a_superseded_phase_does_not_hinder_its_batch_mates(s: &Subject) {
    let mut jobs = Vec::new();
    for n in 0..30_u8 {
        jobs.push(claimed(s, &format!("billing:{n}"), n, "x").await);
    }
    for n in (0..30).step_by(3) {
        let key = format!("billing:{n}");
        s.raw.end_lease(&key).await;
        written(s.replace(&rows::takeover(&s.row(&key).await, 99)).await);
    }
    let batch: Vec<_> = (0..30_u8)
        .map(|n| match n % 2 {
            0 => {
                finish(&jobs[usize::from(n)], "x", n, jobs[usize::from(n)].fence, rows::completed(Some("1")))
            }
            _ => insert(&jobs[usize::from(n)], "y", rows::claim(n)),
        })
        .rev()
        .collect();
    let answers = s.store.phase(&batch).await.expect("answers");
    for (n, answer) in (0..30_usize).rev().zip(answers) {
        let right = if n % 3 == 0 { Answer::Gone } else { Answer::Written { fence: jobs[n].fence } };
        assert_eq!(answer, right, "{n}");
        let [x, y] = [phase(s, &jobs[n], "x").await, phase(s, &jobs[n], "y").await];
        assert_eq!(x.expect("a row").status == Status::Completed, n % 3 != 0 && n % 2 == 0, "{n}");
        assert_eq!(y.is_some(), n % 3 != 0 && n % 2 == 1, "{n}");
    }
}

/// Whether it was a phase that was to end, and the answer.
type Contender = Pin<Box<dyn Future<Output = (bool, Answer)> + Send>>;

pub(super) async fn a_takeover_and_a_phases_end_have_one_winner(s: &Subject) {
    for n in 0..40 {
        let key = format!("billing:{n}");
        let job = claimed(s, &key, 1, "x").await;
        s.raw.end_lease(&key).await;
        let takeover = rows::takeover(&s.row(&key).await, 2);
        let ended = [finish(&job, "x", 1, job.fence, rows::completed(Some("1")))];
        let (store, another) = (s.store.clone(), s.another());
        let contenders: [Contender; 2] = [
            Box::pin(async move { (true, answered(|| store.phase(&ended)).await.remove(0)) }),
            Box::pin(async move { (false, answered(|| another.replace(&takeover)).await) }),
        ];
        let mut winners = Vec::new();
        for (ends, answer) in race(contenders).await {
            match answer {
                Answer::Written { .. } => winners.push(ends),
                Answer::Gone => assert!(ends, "{key}"),
                Answer::Found(row) => assert!(!ends && row.lease_until > Some(row.now), "{key}"),
            }
        }
        assert_eq!(winners.len(), 1, "{key}");
        assert_eq!(s.row(&format!("{key}/x")).await.status == Status::Completed, winners[0], "{key}");
        assert_eq!(s.row(&key).await.owner, Some(rows::owner(if winners[0] { 1 } else { 2 })), "{key}");
    }
}

pub(super) async fn of_32_executions_at_once_one_claims_a_phase(s: &Subject) {
    let job = under("billing:1", 1, s.claim("billing:1", 1).await);
    let answers = race((0..32_u8).map(|n| {
        let store = if n % 2 == 0 { s.store.clone() } else { s.another() };
        let batch = [insert(&job, "x", rows::claim(n))];
        async move { answered(|| store.phase(&batch)).await.remove(0) }
    }))
    .await;
    let won = answers.iter().filter(|answer| matches!(answer, Answer::Written { .. })).count();
    let met = answers.iter().filter(|answer| matches!(answer, Answer::Found(_))).count();
    assert_eq!((won, met), (1, 31), "{answers:?}");
}

pub(super) async fn a_dropped_phase_is_written_or_not_and_the_store_goes_on(s: &Subject) {
    for (n, moment) in super::cancel::moments().enumerate() {
        let key = format!("billing:{n}");
        let job = claimed(s, &key, 1, "x").await;
        let batch =
            [finish(&job, "x", 1, job.fence, rows::completed(Some("1"))), insert(&job, "y", rows::claim(1))];
        for batch in [&batch[..], &batch[..1]] {
            let _ = timeout(moment, s.store.phase(batch)).await;
            for answer in answered(|| s.store.phase(batch)).await {
                written(answer);
            }
        }
        assert_eq!(s.row(&format!("{key}/x")).await.result.as_deref(), Some("1"));
        assert_eq!(s.row(&format!("{key}/y")).await.owner, Some(rows::owner(1)));
    }
}

pub(super) async fn what_lies_between_two_keys_is_read_in_the_order_of_bytes(s: &Subject) {
    let mut keys = [
        "k",
        "k!",
        "k-",
        "k/",
        "k/1",
        "k/10",
        "k/2",
        "k/Z",
        "k/_",
        "k/a",
        "k/a:b",
        "k/ä",
        "k/\u{10ffff}",
        "k0",
        "k:1",
        "K/b",
        "j/z",
    ]
    .map(ToOwned::to_owned);
    let batch: Vec<_> = keys.iter().map(|key| rows::insert(key, rows::claim(1))).collect();
    for answer in s.store.insert(&batch).await.expect("answers") {
        written(answer);
    }
    keys.sort();
    for (after, before) in
        [("k/", "k0"), ("", "~"), ("k/1", "k/a"), ("k/a", "k/a"), ("z", "a"), ("k/b", "k/c"), ("k%", "k'")]
    {
        let inside: Vec<_> =
            keys.iter().filter(|key| after < key.as_str() && key.as_str() < before).collect();
        for limit in [0, 1, 3, inside.len(), 100] {
            let read =
                s.store.between(after, before, u32::try_from(limit).expect("few")).await.expect("rows");
            let read: Vec<_> = read.iter().map(|row| &row.key).collect();
            assert_eq!(read, inside[..limit.min(inside.len())], "{after} {before} {limit}");
        }
    }
    let [whole] = s.store.between("k/0", "k/10", 9).await.expect("rows").try_into().expect("one row");
    assert_eq!(at_rest(whole), at_rest(s.row("k/1").await));
}

/// What a caller's transaction hears of a claim; the transaction is rolled back unless it is to be committed.
macro_rules! asked {
    ($database:ty, $connection:expr, $s:expr, $job:expr, $commit:expr) => {{
        let mut connection = $connection.lock().await;
        let mut transaction = connection.begin().await.expect("a transaction");
        let mut savepoint = Default::default();
        let enlisted = <$database>::enlist(&mut transaction, &*$s.store, &mut savepoint);
        let stands = enlisted.expect("its own store").stands($job).await;
        let stands = stands.map_err(|halt| format!("{halt:?}"));
        if $commit {
            transaction.commit().await.expect("committed");
        } else {
            transaction.rollback().await.expect("rolled back");
        }
        stands
    }};
}

async fn stands(s: &Subject, job: &Renew, commit: bool) -> Result<bool, String> {
    match &s.raw {
        Raw::Memory(_) => panic!("memory knows no transaction"),
        Raw::Sqlite(connection) => asked!(sqlx::Sqlite, connection, s, job, commit),
        Raw::Postgres(connection) => asked!(sqlx::Postgres, connection, s, job, commit),
        Raw::Mysql(connection) => asked!(sqlx::MySql, connection, s, job, commit),
    }
}

pub(super) async fn a_transaction_is_told_whether_its_job_stands(s: &Subject) {
    let job = under("billing:1", 1, s.claim("billing:1", 1).await);
    let before = s.row("billing:1").await;
    assert_eq!(stands(s, &job, false).await, Ok(true));
    assert_eq!(at_rest(s.row("billing:1").await), at_rest(before.clone()), "in the transaction alone");
    assert_eq!(stands(s, &job, true).await, Ok(true));
    let renewed = s.row("billing:1").await;
    let left = renewed.lease_until.expect("a lease") - renewed.now;
    assert!((3_590_000_000..=3_600_000_000).contains(&left), "{left}");
    assert_eq!(
        changed(&at_rest(renewed), |row| row.lease_until = before.lease_until),
        at_rest(before),
        "and nothing else"
    );

    for wrong in [
        Renew { owner: rows::owner(2), ..job.clone() },
        Renew { fence: job.fence + 1, ..job.clone() },
        Renew { key: "billing:2".into(), ..job.clone() },
    ] {
        assert_eq!(stands(s, &wrong, true).await, Ok(false), "{wrong:?}");
    }
    for (word, right) in [
        ("needs_review", true),
        ("released", false),
        ("completed", false),
        ("failed", false),
        ("paused", false),
        ("processing", true),
    ] {
        let key = format!("billing:{word}");
        let fence = written(s.insert(&key, rows::in_state(Status::from(word), 1)).await);
        let before = at_rest(s.row(&key).await);
        assert_eq!(stands(s, &under(&key, 1, fence), true).await, Ok(right), "{word}");
        assert_eq!(at_rest(s.row(&key).await) == before, !right, "{word}");
    }
}

/// Waits no longer for a lock than this, at most a second and what the machine takes.
const SOON: Duration = Duration::from_secs(4);

pub(super) async fn a_transaction_waits_shortly_for_the_row_of_its_job(s: &Subject) {
    let job = under("billing:1", 1, s.claim("billing:1", 1).await);
    let before = at_rest(s.row("billing:1").await);
    let other = s.another_hand().await;
    other.execute("BEGIN").await;
    other.execute("SELECT \"key\" FROM idempotency_keys WHERE \"key\" = 'billing:1' FOR UPDATE").await;
    let began = Instant::now();
    let halt = stands(s, &job, false).await.expect_err("the row is locked");
    assert!(halt.contains("Locked"), "{halt}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    other.execute("COMMIT").await;
    assert_eq!(at_rest(s.row("billing:1").await), before);
    assert_eq!(stands(s, &job, true).await, Ok(true));
}

/// What a store is to purge, held together: jobs that have ended long ago, each with phases of its own.
pub(super) async fn ended_with_phases(s: &Subject, job: &str, n: u8, status: &str) -> Vec<Arc<str>> {
    let claim = under(job, n, s.claim(job, n).await);
    let writes = ["a", "b:2", "z"].map(|name| insert(&claim, name, rows::in_state(Status::Completed, n)));
    for answer in s.store.phase(&writes).await.expect("answers") {
        written(answer);
    }
    let ended = NewRow {
        status: Status::from(status),
        lease: Moment::Never,
        expires: Moment::At(rows::PAST),
        ..rows::again(&s.row(job).await)
    };
    written(s.replace(&Replace { row: ended, ..rows::restated(&s.row(job).await, Status::Completed) }).await);
    writes.iter().map(|write| write.key().clone()).collect()
}

/// How many of these rows there are.
pub(super) async fn left(store: &dyn Store, keys: &[Arc<str>]) -> usize {
    store.read(keys).await.expect("rows").iter().flatten().count()
}
