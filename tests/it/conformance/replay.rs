//! What repeats of a completed key get.

use idem_runtime::{ErrorKind, Idem, Outcome, idempotent, with_outcome};
use serde::{Deserialize, Serialize};

use super::{
    call::{Fault, Runs, refused, row},
    rows::HOUR,
    subject::{Subject, race},
};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Empty {}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped(Vec<Option<()>>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Exact(f64);

macro_rules! same_value_twice {
    ($s:ident, $($key:literal => $type:ty: $value:expr;)+) => {
        let idems = [$s.idem().await, $s.idem().await];
        $({
        #[idempotent(key = $key, idem = idem)]
        async fn job(id: u32, idem: &Idem, runs: &Runs) -> Result<$type, Fault> {
            runs.enter();
            Ok($value)
        }
        let runs = Runs::default();
        let (first, executed) = with_outcome(job(1, &idems[0], &runs)).await;
        let (again, replayed) = with_outcome(job(1, &idems[1], &runs)).await;
        assert_eq!(first.expect("a value"), again.expect("a value"), $key);
        assert_eq!((executed, replayed), (Some(Outcome::Executed), Some(Outcome::Replayed)), $key);
        assert_eq!(runs.count(), 1, $key);
        })+
    };
}

pub(super) async fn a_unit_replays(s: &Subject) {
    same_value_twice!(s, "conf-unit:<id>" => (): (););
}

pub(super) async fn values_that_look_like_nothing_replay(s: &Subject) {
    same_value_twice! { s,
        "conf-none:<id>" => Option<u32>: None;
        "conf-false:<id>" => bool: false;
        "conf-zero:<id>" => i64: 0;
        "conf-blank:<id>" => String: String::new();
        "conf-list:<id>" => Vec<String>: Vec::new();
        "conf-empty:<id>" => Empty: Empty {};
        "conf-tuple:<id>" => (u8,): (0,);
        "conf-wrapped:<id>" => Wrapped: Wrapped(vec![None]);
    }
}

pub(super) async fn values_come_back_exactly(s: &Subject) {
    same_value_twice! { s,
        "conf-float:<id>" => Exact: Exact(0.1 + 0.2);
        "conf-tiny:<id>" => Exact: Exact(f64::MIN_POSITIVE);
        "conf-u64:<id>" => u64: u64::MAX;
        "conf-i128:<id>" => i128: i128::MIN;
        "conf-text:<id>" => String: "\0 ' \" \\ \u{2028} é e\u{301} \u{1f600}".to_owned();
    }
}

#[idempotent(key = "conf-some-none:<id>", idem = idem)]
async fn some_none(id: u32, idem: &Idem, runs: &Runs) -> Result<Option<Option<u32>>, Fault> {
    runs.enter();
    Ok(Some(None))
}

#[idempotent(key = "conf-nan:<id>", idem = idem)]
async fn not_a_number(id: u32, idem: &Idem, runs: &Runs) -> Result<Vec<f64>, Fault> {
    runs.enter();
    Ok(vec![1.0, f64::NAN])
}

pub(super) async fn what_json_cannot_carry_back_is_completed_without_a_result(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    assert_eq!(some_none(1, &idem, &runs).await.expect("its own value"), Some(None));
    assert_eq!(refused(some_none(1, &idem, &runs).await), ErrorKind::AlreadyCompleted);
    assert!(not_a_number(1, &idem, &runs).await.expect("its own value")[1].is_nan());
    assert_eq!(refused(not_a_number(1, &idem, &runs).await), ErrorKind::AlreadyCompleted);
    assert_eq!(runs.count(), 2);
    assert_eq!(row(&idem, "conf-nan:1").await.result, None);
}

#[idempotent(key = "conf-long:<id>", idem = idem)]
async fn long(id: u32, length: usize, idem: &Idem, runs: &Runs) -> Result<String, Fault> {
    runs.enter();
    Ok("x".repeat(length))
}

pub(super) async fn a_result_over_the_limit_is_completed_without_it(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    // Two quotes stand around it.
    let limit = 64 * 1024 - 2;
    for (id, length) in [(1, limit), (2, limit + 1)] {
        assert_eq!(long(id, length, &idem, &runs).await.expect("its own value").len(), length);
    }
    assert_eq!(long(1, limit, &idem, &runs).await.expect("replayed").len(), limit);
    assert_eq!(refused(long(2, limit, &idem, &runs).await), ErrorKind::AlreadyCompleted);
    assert_eq!(runs.count(), 2);
}

pub(super) async fn the_limit_of_results_can_be_set(s: &Subject) {
    let idem = s.builder().result_limit(10).connect().await.expect("an `Idem`");
    let runs = Runs::default();
    long(1, 8, &idem, &runs).await.expect("its own value");
    long(1, 8, &idem, &runs).await.expect("replayed");
    long(2, 9, &idem, &runs).await.expect("its own value");
    assert_eq!(refused(long(2, 9, &idem, &runs).await), ErrorKind::AlreadyCompleted);
    assert_eq!(runs.count(), 2);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct OldReceipt {
    amount: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct NewReceipt {
    amount: u8,
    currency: String,
}

#[idempotent(key = "conf-receipt:<id>", idem = idem)]
async fn old_receipt(id: u32, idem: &Idem, runs: &Runs) -> Result<OldReceipt, Fault> {
    runs.enter();
    Ok(OldReceipt { amount: 300 })
}

#[idempotent(key = "conf-receipt:<id>", idem = idem, allow_overlap(old_receipt))]
async fn new_receipt(id: u32, idem: &Idem, runs: &Runs) -> Result<NewReceipt, Fault> {
    runs.enter();
    Ok(NewReceipt { amount: 3, currency: "EUR".to_owned() })
}

pub(super) async fn a_result_that_no_longer_fits_is_an_error_and_never_a_rerun(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    old_receipt(1, &idem, &runs).await.expect("a receipt");
    let before = row(&idem, "conf-receipt:1").await;
    let Err(Fault::Idem(error)) = new_receipt(1, &idem, &runs).await else { panic!("a field is missing") };
    assert_eq!(error.kind(), ErrorKind::ReplayUnreadable);
    assert_eq!(error.key().map(ToString::to_string).as_deref(), Some("conf-receipt:1"));
    assert_eq!(row(&idem, "conf-receipt:1").await, before);
    assert_eq!(old_receipt(1, &idem, &runs).await.expect("still readable"), OldReceipt { amount: 300 });
    assert_eq!(runs.count(), 1);
}

#[derive(Debug)]
struct Unserializable;

#[idempotent(key = "conf-no-replay:<id>", replay = false, idem = idem)]
async fn no_replay(id: u32, idem: &Idem, runs: &Runs) -> Result<Unserializable, Fault> {
    runs.enter();
    Ok(Unserializable)
}

pub(super) async fn without_replay_a_repeat_is_told_that_it_is_done(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    no_replay(1, &idem, &runs).await.expect("its own value");
    assert_eq!(refused(no_replay(1, &idem, &runs).await), ErrorKind::AlreadyCompleted);
    assert_eq!((runs.count(), row(&idem, "conf-no-replay:1").await.result), (1, None));
}

#[idempotent(key = "conf-by-hand-unit:<id>", idem = idem)]
async fn by_hand_unit(id: u32, idem: &Idem, runs: &Runs) -> Result<(), Fault> {
    runs.enter();
    Ok(())
}

#[idempotent(key = "conf-by-hand-number:<id>", idem = idem)]
async fn by_hand_number(id: u32, idem: &Idem, runs: &Runs) -> Result<Option<u32>, Fault> {
    runs.enter();
    Ok(Some(7))
}

pub(super) async fn a_completion_by_hand_replays_a_unit_and_nothing_else(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    for key in ["conf-by-hand-unit:1", "conf-by-hand-number:1"] {
        s.raw.begin_by_hand(key).await;
        s.raw.complete_by_hand(key).await;
    }
    by_hand_unit(1, &idem, &runs).await.expect("replayed");
    assert_eq!(refused(by_hand_number(1, &idem, &runs).await), ErrorKind::AlreadyCompleted);
    assert_eq!(runs.count(), 0);
}

#[idempotent(key = "conf-storm:<id>", idem = idem)]
async fn storm(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn of_32_callers_one_runs(s: &Subject) {
    let idems = [s.idem().await, s.idem().await];
    let runs = std::sync::Arc::new(Runs::default());
    let returned = race((0..32).map(|n| {
        let (idem, runs) = (idems[n % 2].clone(), std::sync::Arc::clone(&runs));
        async move { storm(1, &idem, &runs).await }
    }))
    .await;
    assert_eq!(runs.count(), 1);
    for returned in returned {
        match returned {
            Ok(value) => assert_eq!(value, 1),
            refusal => assert_eq!(refused(refusal), ErrorKind::InProgress),
        }
    }
    assert_eq!(storm(1, &idems[1], &runs).await.expect("replayed"), 1);
}

#[idempotent(key = "conf-key:<id>", idem = idem)]
async fn long_key(id: &str, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn a_key_that_is_too_long_for_its_column_stays_itself(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    let ids = [
        format!("{}a", "x".repeat(300)),
        format!("{}b", "x".repeat(300)),
        format!("{}a", "\u{1f600}".repeat(1_000)),
        format!("{}b", "\u{1f600}".repeat(1_000)),
        "x".repeat(246),
        "x".repeat(247),
    ];
    for _ in 0..2 {
        for (n, id) in (1..).zip(&ids) {
            assert_eq!(long_key(id, &idem, &runs).await.expect("its own number"), n);
        }
    }
    let whole = row(&idem, &format!("conf-key:{}", ids[4])).await;
    assert_eq!(whole.key, format!("conf-key:{}", ids[4]));
    assert_eq!(row(&idem, &format!("conf-key:{}", ids[1])).await.key.len(), 189 + 2 + 64);
}

#[idempotent(key = "conf-namespace:<id>", idem = idem)]
async fn in_namespace(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn a_namespace_has_its_own_keys(s: &Subject) {
    let runs = Runs::default();
    let plain = s.idem().await;
    let staging = s.builder().namespace("staging").connect().await.expect("an `Idem`");
    let live = s.builder().namespace("live").connect().await.expect("an `Idem`");
    for _ in 0..2 {
        for (n, idem) in (1..).zip([&plain, &staging, &live]) {
            assert_eq!(in_namespace(1, idem, &runs).await.expect("its own number"), n);
        }
    }
    assert_eq!(row(&staging, "conf-namespace:1").await.key, "staging%:conf-namespace:1");
}

#[idempotent(key = "conf-purge:<id>", ttl = "1h", idem = idem)]
async fn purgeable(id: u32, idem: &Idem) -> Result<(), Fault> {
    Ok(())
}

pub(super) async fn a_living_completion_is_not_purged(s: &Subject) {
    let idem = s.idem().await;
    purgeable(1, &idem).await.expect("done");
    assert_eq!(idem.purge().await.expect("a purge"), 0);
    let read = row(&idem, "conf-purge:1").await;
    let term = read.expires_at.expect("an expiry") - read.completed_at.expect("a completion");
    let hour = i64::try_from(HOUR.as_micros()).expect("an hour");
    // A completion's moment may be kept in whole seconds.
    assert!((hour - 1_000..hour + 1_000_001).contains(&term), "{term}");
}
