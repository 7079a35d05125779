//! The watcher: what it turns over, what it leaves, and whom it tells.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use idem_runtime::{
    Alert, AlertKind, Builder, Idem, Resolution, Status, idempotent,
    record::Record,
    store::{Answer, Ending, Moment, NewRow, Replace, Watch},
};
use tokio::time::sleep;

use super::{
    call::{Fault, Gate, Runs, body_fails, failed, row},
    rows::{self, LEASE, PAST},
    subject::Subject,
};

const OFTEN: Duration = Duration::from_millis(20);

/// What a hook was told, and by which process.
#[derive(Clone, Default)]
struct Tellings(Arc<Mutex<Vec<(AlertKind, String, String)>>>);

impl Tellings {
    /// A watcher that looks often and tells here.
    async fn watcher(&self, s: &Subject, detail: impl FnOnce(Builder) -> Builder) -> Idem {
        let told = self.clone();
        let builder = s.builder().watch_every(OFTEN).on_alert(move |alerts: &[Alert]| {
            let mut tellings = told.0.lock().expect("tellings");
            tellings.extend(alerts.iter().map(|alert| (alert.kind, alert.key.clone(), alert.reason.clone())));
        });
        detail(builder).connect().await.expect("an `Idem`")
    }

    fn of(&self, key: &str) -> Vec<(AlertKind, String)> {
        let tellings = self.0.lock().expect("tellings");
        let of_key = tellings.iter().filter(|(_, told, _)| told == key);
        of_key.map(|(kind, _, reason)| (*kind, reason.clone())).collect()
    }
}

/// A claim whose worker died long ago, of a lease short enough not to be waited for.
fn dead(n: u8) -> NewRow {
    NewRow { on_stale: Some("alert".to_owned()), lease: Moment::At(PAST), ..rows::claim(n) }
}

async fn until(s: &Subject, key: &str, such: impl Fn(&Record) -> bool) -> Record {
    for _ in 0..1_500 {
        let row = s.row(key).await;
        if such(&row) {
            return row;
        }
        sleep(OFTEN).await;
    }
    panic!("{:#?}", s.row(key).await);
}

fn is_told(row: &Record) -> bool {
    row.status == Status::NeedsReview && row.alerted_at.is_some()
}

/// Lets the watchers look a few times more.
async fn some_looks() {
    sleep(20 * OFTEN).await;
}

pub(super) async fn a_stale_claim_that_nobody_calls_is_turned_over_and_told(s: &Subject) {
    let tellings = Tellings::default();
    let fence =
        rows::written(s.insert("watch:1", NewRow { error: Some("time-out".into()), ..dead(1) }).await);
    let idem = tellings.watcher(s, |builder| builder.worker("the watcher")).await;
    let row = until(s, "watch:1", is_told).await;
    assert!(row.is_of(&rows::owner(1), fence), "a watcher takes nothing over: {row:#?}");
    let told = tellings.of("watch:1");
    let [(AlertKind::NeedsReview, reason)] = &told[..] else { panic!("{told:?}") };
    for word in ["attempt 1", "worker-1", &rows::owner(1), "time-out"] {
        assert!(reason.contains(word), "{reason}");
    }
    let audit = idem.audit("watch:1").await.expect("lines");
    let [line] = &audit[..] else { panic!("{audit:?}") };
    assert_eq!((line.audit.actor.as_str(), line.audit.to_status.as_str()), ("the watcher", "needs_review"));
    assert!(line.audit.note.contains("worker-1") && line.at > 0, "{line:?}");
}

pub(super) async fn what_may_run_again_is_left_to_the_next_delivery(s: &Subject) {
    let tellings = Tellings::default();
    for policy in ["retry", "probe"] {
        s.insert(policy, NewRow { on_stale: Some(policy.to_owned()), ..dead(1) }).await;
    }
    s.insert("alert", dead(1)).await;
    let _watching = tellings.watcher(s, |builder| builder).await;
    until(s, "alert", is_told).await;
    some_looks().await;
    for policy in ["retry", "probe"] {
        assert_eq!(s.row(policy).await.status, Status::Processing, "{policy}");
        assert_eq!(tellings.of(policy), []);
    }
}

pub(super) async fn a_policy_of_tomorrow_is_turned_over(s: &Subject) {
    let tellings = Tellings::default();
    s.insert("tomorrow", NewRow { on_stale: Some("ask a model".to_owned()), ..dead(1) }).await;
    let _watching = tellings.watcher(s, |builder| builder).await;
    until(s, "tomorrow", is_told).await;
}

pub(super) async fn a_claim_without_owner_is_turned_over_at_its_age(s: &Subject) {
    let tellings = Tellings::default();
    for key in ["old", "young"] {
        s.raw.begin_by_hand(key).await;
    }
    s.raw.age("old", Duration::from_mins(20)).await;
    let short = Duration::from_millis(300);
    let young = tellings.watcher(s, |builder| builder).await;
    some_looks().await;
    assert_eq!(s.row("young").await.status, Status::Processing);
    drop(young);
    let old = until(s, "old", |row| row.status != Status::Completed).await;
    assert!(old.owner.is_none());
    let _watching = tellings.watcher(s, |builder| builder.foreign_stale_after(short)).await;
    until(s, "old", is_told).await;
}

#[idempotent(key = "watch-held:<id>", stale_after = "1s", idem = idem)]
async fn held(id: u32, idem: &Idem) -> Result<(), Fault> {
    body_fails("time-out")
}

pub(super) async fn what_a_body_held_is_told_without_a_call(s: &Subject) {
    let tellings = Tellings::default();
    let idem = tellings.watcher(s, |builder| builder).await;
    failed(held(1, &idem).await);
    let row = until(s, "watch-held:1", is_told).await;
    assert_eq!(row.error.as_deref(), Some("time-out"));
    assert_eq!(tellings.of("watch-held:1").len(), 1);
}

#[idempotent(key = "watch-live:<id>", stale_after = "1s", idem = idem)]
async fn lives(id: u32, idem: &Idem, runs: &Runs, gate: &Gate) -> Result<(), Fault> {
    runs.enter();
    gate.pass().await;
    Ok(())
}

pub(super) async fn a_claim_that_is_renewed_is_left_alone_and_told_of_once_it_is_overdue(s: &Subject) {
    let (tellings, runs, gate) = (Tellings::default(), Runs::default(), Gate::default());
    let idem = tellings.watcher(s, |builder| builder.overdue_after(Duration::from_millis(1_500))).await;
    let ((), done) = tokio::join!(
        async {
            gate.entered().await;
            while tellings.of("watch-live:1").is_empty() {
                sleep(OFTEN).await;
            }
            sleep(Duration::from_secs(1)).await;
            let row = row(&idem, "watch-live:1").await;
            assert_eq!((row.status, row.alerted_at), (Status::Processing, None));
            gate.open();
        },
        lives(1, &idem, &runs, &gate),
    );
    done.expect("a live job ends as it would");
    let told = tellings.of("watch-live:1");
    assert!(
        matches!(&told[..], [(AlertKind::Overdue, reason)] if reason.contains("still at it")),
        "{told:?}"
    );
}

pub(super) async fn what_is_overdue_before_its_first_heartbeat_is_told_of(s: &Subject) {
    let (tellings, runs, gate) = (Tellings::default(), Runs::default(), Gate::default());
    let idem = tellings.watcher(s, |builder| builder.overdue_after(5 * OFTEN)).await;
    let ((), done) = tokio::join!(
        async {
            gate.entered().await;
            while tellings.of("watch-long:1").is_empty() {
                sleep(OFTEN).await;
            }
            gate.open();
        },
        has_a_long_lease(1, &idem, &runs, &gate),
    );
    done.expect("a live job ends as it would");
}

#[idempotent(key = "watch-long:<id>", stale_after = "1d", idem = idem)]
async fn has_a_long_lease(id: u32, idem: &Idem, runs: &Runs, gate: &Gate) -> Result<(), Fault> {
    runs.enter();
    gate.pass().await;
    Ok(())
}

pub(super) async fn a_key_that_is_turned_over_again_while_its_hook_runs_is_told_of_again(s: &Subject) {
    let tellings = Tellings::default();
    let (open, closed) = mpsc::channel::<()>();
    let (told, closed) = (tellings.clone(), Mutex::new(closed));
    let builder = s.builder().watcher(false).on_alert(move |alerts: &[Alert]| {
        let key = alerts[0].key.clone();
        told.0.lock().expect("tellings").push((AlertKind::NeedsReview, key, String::new()));
        // The first one waits for a person who takes their time.
        let _ = closed.lock().expect("one thread").recv();
    });
    let idem = builder.connect().await.expect("an `Idem`");
    for _ in 0..2 {
        failed(held(7, &idem).await);
        super::call::refused(held(7, &idem).await);
        while tellings.of("watch-held:7").is_empty() {
            sleep(OFTEN).await;
        }
        idem.resolve("watch-held:7", Resolution::Retry).await.expect("freed");
    }
    drop(open);
    while tellings.of("watch-held:7").len() < 2 {
        sleep(OFTEN).await;
    }
}

pub(super) async fn of_ten_watchers_one_tells_of_each_claim(s: &Subject) {
    let tellings = Tellings::default();
    let mut watching = Vec::new();
    for _ in 0..10 {
        watching.push(tellings.watcher(s, |builder| builder.connections(1)).await);
    }
    let keys: Vec<String> = (0..20).map(|n| format!("watch-ten:{n}")).collect();
    for key in &keys {
        s.insert(key, dead(1)).await;
    }
    for key in &keys {
        until(s, key, is_told).await;
    }
    some_looks().await;
    for key in &keys {
        assert_eq!(tellings.of(key).len(), 1, "{key}");
        let audit = watching[0].audit(key).await.expect("lines");
        assert_eq!(audit.len(), 1, "one write turned {key} over");
    }
}

pub(super) async fn a_row_whose_teller_died_is_told_of_by_one_other(s: &Subject) {
    let tellings = Tellings::default();
    let review = NewRow { status: Status::NeedsReview, ..dead(1) };
    s.insert("watch-untold:1", review).await;
    let mut watching = Vec::new();
    for _ in 0..5 {
        watching.push(tellings.watcher(s, |builder| builder.untold_for(5 * OFTEN).connections(1)).await);
    }
    until(s, "watch-untold:1", is_told).await;
    some_looks().await;
    assert_eq!(tellings.of("watch-untold:1").len(), 1);
}

pub(super) async fn a_holder_that_heartbeats_in_review_keeps_nobody_from_being_told(s: &Subject) {
    let tellings = Tellings::default();
    let review = NewRow { status: Status::NeedsReview, ..dead(1) };
    let fence = rows::written(s.insert("watch-alive:1", review).await);
    let _watching = [
        tellings.watcher(s, |builder| builder.untold_for(10 * OFTEN)).await,
        tellings.watcher(s, |builder| builder.untold_for(10 * OFTEN)).await,
    ];
    let told = async {
        until(s, "watch-alive:1", is_told).await;
    };
    let heartbeats = async {
        loop {
            s.renew("watch-alive:1", 1, fence, LEASE).await;
            sleep(OFTEN).await;
        }
    };
    tokio::select! {
        () = told => {}
        () = heartbeats => {}
    }
    some_looks().await;
    assert_eq!(tellings.of("watch-alive:1").len(), 1);
}

pub(super) async fn a_hook_that_takes_long_is_not_overtaken(s: &Subject) {
    let (tellings, patience) = (Tellings::default(), 15 * OFTEN);
    s.insert("watch-slow:1", dead(1)).await;
    let slow = {
        let tellings = tellings.clone();
        s.builder().watch_every(OFTEN).untold_for(patience).on_alert(move |alerts: &[Alert]| {
            let key = alerts[0].key.clone();
            tellings.0.lock().expect("tellings").push((AlertKind::NeedsReview, key, "slow".into()));
            std::thread::sleep(5 * patience);
        })
    };
    let _slow = slow.connect().await.expect("an `Idem`");
    until(s, "watch-slow:1", |row| row.status == Status::NeedsReview).await;
    let _others = [
        tellings.watcher(s, |builder| builder.untold_for(patience)).await,
        tellings.watcher(s, |builder| builder.untold_for(patience)).await,
    ];
    until(s, "watch-slow:1", is_told).await;
    some_looks().await;
    let told = tellings.of("watch-slow:1");
    assert!(matches!(&told[..], [(_, by)] if by == "slow"), "{told:?}");
}

pub(super) async fn a_process_without_a_hook_leaves_the_telling_to_one_that_has_one(s: &Subject) {
    let tellings = Tellings::default();
    s.insert("watch-mute:1", dead(1)).await;
    let mute = s.builder().watch_every(OFTEN).connect().await.expect("an `Idem`");
    until(s, "watch-mute:1", |row| row.status == Status::NeedsReview).await;
    some_looks().await;
    assert_eq!(s.row("watch-mute:1").await.alerted_at, None);
    drop(mute);
    let _watching = tellings.watcher(s, |builder| builder.untold_for(2 * OFTEN)).await;
    until(s, "watch-mute:1", is_told).await;
    assert_eq!(tellings.of("watch-mute:1").len(), 1);
}

/// What a look finds now.
async fn look(s: &Subject, untold: bool, limit: u32) -> Vec<Record> {
    let watch = Watch { foreign_stale_after: Duration::from_mins(15), untold, limit };
    s.store.watch(&watch).await.expect("a look")
}

/// A row, whenever it was read.
fn at_rest(mut record: Record) -> Record {
    record.now = 0;
    record
}

fn flag(record: &Record) -> Replace {
    Replace {
        key: record.key.as_str().into(),
        expected: record.version(),
        row: NewRow { status: Status::NeedsReview, ..rows::again(record) },
        raise_fence: false,
        renew_birth: false,
        audit: None,
    }
}

pub(super) async fn a_look_that_is_old_turns_nothing_over(s: &Subject) {
    let keys = ["completed", "renewed", "taken", "reborn"];
    let mut fences = Vec::new();
    for key in keys {
        fences.push(rows::written(s.insert(key, dead(1)).await));
    }
    let old = look(s, false, 10).await;
    assert_eq!(old.len(), 4);

    let done = Ending::Completed { result: Some("1".into()), ttl: None };
    rows::written(s.finish("completed", 1, fences[0], done).await);
    s.renew("renewed", 1, fences[1], LEASE).await;
    let taken = s.row("taken").await;
    let heir = NewRow { status: Status::Processing, ..rows::claim(2) };
    rows::written(s.replace(&Replace { row: heir, raise_fence: true, ..flag(&taken) }).await);
    let reborn = s.row("reborn").await;
    let again = NewRow { lease: Moment::At(PAST), ..rows::again(&reborn) };
    rows::written(
        s.replace(&Replace { row: again, raise_fence: true, renew_birth: true, ..flag(&reborn) }).await,
    );

    for record in &old {
        let before = s.row(&record.key).await;
        assert!(matches!(s.replace(&flag(record)).await, Answer::Found(_)), "{}", record.key);
        assert_eq!(at_rest(s.row(&record.key).await), at_rest(before));
    }
}

pub(super) async fn a_look_finds_what_waits_for_review_and_nothing_else(s: &Subject) {
    s.insert("stale-2", NewRow { lease: Moment::At(2), ..dead(1) }).await;
    s.insert("stale-1", dead(1)).await;
    s.insert("live", NewRow { lease: Moment::In(LEASE), ..dead(1) }).await;
    s.insert("retry", NewRow { on_stale: Some("retry".into()), ..dead(1) }).await;
    s.insert("nobody's", NewRow { owner: None, on_stale: None, ..dead(1) }).await;
    s.insert("done", NewRow { status: Status::Completed, ..dead(1) }).await;
    s.insert("paused", NewRow { status: Status::Other("paused".into()), ..dead(1) }).await;
    s.insert("untold", NewRow { status: Status::NeedsReview, ..dead(1) }).await;
    s.insert("told", NewRow { status: Status::NeedsReview, alerted: Moment::At(5), ..dead(1) }).await;
    let keys = |rows: Vec<Record>| rows.into_iter().map(|row| row.key).collect::<Vec<_>>();

    let mut found = keys(look(s, false, 10).await);
    assert_eq!(found.pop().as_deref(), Some("stale-2"), "those that went stale first come first: {found:?}");
    found.sort_unstable();
    assert_eq!(found, ["nobody's", "stale-1"]);
    assert_eq!(look(s, true, 10).await.len(), 4);
    assert_eq!(look(s, false, 1).await.len(), 1);
    let [row] = &look(s, false, 1).await[..] else { panic!("one row") };
    assert_eq!(at_rest(row.clone()), at_rest(s.row(&row.key).await));
}
