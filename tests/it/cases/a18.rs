//! The stored result no longer fits the type, or does not come back as it was.

use std::{collections::HashMap, fmt::Debug};

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, record::Status, with_outcome};
use idem_tests::Capture;
use serde::{Deserialize, Serialize};
use tracing::Level;

use super::{
    call::{executed, refused, replayed, value},
    site::{Site, Worker, at_rest},
};

/// The first version of the jobs.
mod v1 {
    use super::{Deserialize, Error, Serialize, Worker, idempotent};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Receipt {
        pub(super) a: u32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub(super) enum State {
        Payed,
    }

    #[idempotent(key = "a18-receipt:<id>", idem = w.idem)]
    pub(super) async fn receipt(w: &Worker, id: u32) -> Result<Receipt, Error> {
        w.effect("receipt");
        Ok(Receipt { a: id })
    }

    #[idempotent(key = "a18-state:<id>", idem = w.idem)]
    pub(super) async fn state(w: &Worker, id: u32) -> Result<State, Error> {
        w.effect(&format!("state {id}"));
        Ok(State::Payed)
    }

    #[idempotent(key = "a18-count:<id>", mode = "record_after", idem = w.idem)]
    pub(super) async fn count(w: &Worker, id: u32) -> Result<u32, Error> {
        w.effect(&format!("count {id}"));
        Ok(300)
    }

    #[idempotent(key = "a18-done:<id>", idem = w.idem)]
    pub(super) fn done(w: &Worker, id: u32) -> Result<(), Error> {
        w.effect(&format!("done {id}"));
        Ok(())
    }
}

/// The same jobs, one deploy later.
mod v2 {
    use super::{Deserialize, Error, Serialize, Worker, idempotent};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Receipt {
        pub(super) a: u32,
        pub(super) b: u32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub(super) enum State {
        Paid,
    }

    #[idempotent(key = "a18-receipt:<id>", allow_overlap(v1::receipt), idem = w.idem)]
    pub(super) async fn receipt(w: &Worker, id: u32) -> Result<Receipt, Error> {
        w.effect("receipt");
        Ok(Receipt { a: id, b: id })
    }

    #[idempotent(key = "a18-state:<id>", allow_overlap(v1::state), idem = w.idem)]
    pub(super) async fn state(w: &Worker, id: u32) -> Result<State, Error> {
        w.effect(&format!("state {id}"));
        Ok(State::Paid)
    }

    #[idempotent(key = "a18-count:<id>", mode = "record_after", allow_overlap(v1::count), idem = w.idem)]
    pub(super) async fn count(w: &Worker, id: u32) -> Result<u8, Error> {
        w.effect(&format!("count {id}"));
        Ok(1)
    }

    #[idempotent(key = "a18-done:<id>", allow_overlap(v1::done), idem = w.idem)]
    pub(super) fn done(w: &Worker, id: u32) -> Result<u32, Error> {
        w.effect(&format!("done {id}"));
        Ok(1)
    }
}

/// A refusal that names the key and the wanted type, of a row that stays as it is.
async fn is_unreadable<T: Debug>(w: &Worker, key: &str, call: impl Future<Output = Result<T, Error>>) {
    let before = at_rest(w.row(key).await);
    assert_eq!(before.status, Status::Completed);
    let error = refused(ErrorKind::ReplayUnreadable, call).await;
    let text = error.to_string();
    assert!(text.contains(key) && text.contains(std::any::type_name::<T>()), "{text}");
    assert!(!error.is_retryable(), "the same code will fare no better");
    assert_eq!(at_rest(w.row(key).await), before);
}

pub(super) async fn a18_a_result_that_no_longer_fits_is_told_and_not_run_again(site: &Site) {
    let (w, new) = (site.worker().await, site.worker().await);
    executed(v1::receipt(&w, 1)).await;
    executed(v1::state(&w, 1)).await;
    executed(v1::count(&w, 1)).await;
    v1::done(&w, 1).expect("a value");
    for _ in 0..2 {
        is_unreadable(&new, "a18-receipt:1", v2::receipt(&new, 1)).await;
        is_unreadable(&new, "a18-state:1", v2::state(&new, 1)).await;
        is_unreadable(&new, "a18-count:1", v2::count(&new, 1)).await;
        is_unreadable(&new, "a18-done:1", async { v2::done(&new, 1) }).await;
    }
    assert_eq!(replayed(v1::receipt(&w, 1)).await, v1::Receipt { a: 1 }, "the old code still can");
    assert_eq!(replayed(v1::state(&w, 1)).await, v1::State::Payed);
    assert_eq!(replayed(v1::count(&w, 1)).await, 300);
    assert_eq!(site.ledger.total(), 4);
}

/// A newer value that an older version reads: what serde allows is allowed.
pub(super) async fn a18_a_result_that_has_more_than_is_wanted_is_read(site: &Site) {
    let w = site.worker().await;
    executed(v2::receipt(&w, 2)).await;
    assert_eq!(replayed(v1::receipt(&w, 2)).await, v1::Receipt { a: 2 });
}

/// A text that is no JSON, as a hand may have written it.
pub(super) async fn a18_a_result_that_is_no_json_is_told(site: &Site) {
    let w = site.worker().await;
    executed(v1::count(&w, 3)).await;
    for text in ["300 or so", "", "{", "\"300\"", "null", "3e2", "[300]"] {
        site.set("a18-count:3", &format!("result = '{text}'")).await;
        is_unreadable(&w, "a18-count:3", v1::count(&w, 3)).await;
    }
    site.set("a18-count:3", "result = ' 301 '").await;
    assert_eq!(replayed(v1::count(&w, 3)).await, 301);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Session {
    user: u32,
    #[serde(skip)]
    token: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Event {
    Moved { x: f64, y: f64 },
    Named { name: String },
}

macro_rules! round_trips {
    ($($name:ident $key:literal: $type:ty = $value:expr;)+) => {
        $(
            #[idempotent(key = $key, idem = w.idem)]
            async fn $name(w: &Worker, id: u32) -> Result<$type, Error> {
                w.effect(stringify!($name));
                Ok($value).inspect(|_| tracing::trace!(id))
            }
        )+

        async fn round_trips(w: &Worker, other: &Worker) {
            $(
                let expected: $type = $value;
                // `Debug` tells -0 from 0.
                let expected = format!("{expected:?}");
                assert_eq!(format!("{:?}", executed($name(w, 1)).await), expected, stringify!($name));
                assert_eq!(format!("{:?}", replayed($name(other, 1)).await), expected, stringify!($name));
            )+
        }
    };
}

round_trips! {
    u64_max "a18-u64:<id>": u64 = u64::MAX;
    i128_min "a18-i128:<id>": i128 = i128::MIN;
    u128_max "a18-u128:<id>": Option<u128> = Some(u128::MAX);
    sum "a18-sum:<id>": f64 = 0.1 + 0.2;
    floats "a18-floats:<id>": Vec<f64> = vec![f64::MIN_POSITIVE, f64::MAX, 5e-324, 1.0 / 3.0, 1e21, 9_007_199_254_740_993.0];
    single "a18-f32:<id>": f32 = 16_777_217.0_f32 / 3.0;
    texts "a18-texts:<id>": Vec<String> =
        vec!["\0".to_owned(), "\u{7f}\u{2028}\u{feff}".to_owned(), "🦀\\\"'\n".to_owned(), "\u{10ffff}".to_owned()];
    numbered "a18-numbered:<id>": HashMap<u64, String> = HashMap::from([(u64::MAX, "most".to_owned())]);
    moved "a18-moved:<id>": Event = Event::Moved { x: 0.1 + 0.2, y: -0.0 };
    named "a18-named:<id>": Event = Event::Named { name: "x".to_owned() };
}

pub(super) async fn a18_values_come_back_exactly(site: &Site) {
    round_trips(&site.worker().await, &site.worker().await).await;
}

#[idempotent(key = "a18-session:<id>", idem = w.idem)]
async fn session(w: &Worker, id: u32) -> Result<Session, Error> {
    w.effect("session");
    Ok(Session { user: id, token: Some("secret".to_owned()) })
}

/// What the type's own serde leaves out is left out.
pub(super) async fn a18_a_skipped_field_is_the_users(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(session(&w, 1)).await.token.as_deref(), Some("secret"));
    assert_eq!(replayed(session(&w, 1)).await, Session { user: 1, token: None });
    assert!(!w.row("a18-session:1").await.result.expect("a result").contains("secret"));
}

macro_rules! lossy {
    ($($name:ident $key:literal: $type:ty = $value:expr;)+) => {
        $(
            #[idempotent(key = $key, idem = w.idem)]
            async fn $name(w: &Worker, id: u32) -> Result<$type, Error> {
                w.effect(stringify!($name));
                Ok($value).inspect(|_| tracing::trace!(id))
            }
        )+

        async fn lossy(w: &Worker) {
            $(
                let log = Capture::everywhere();
                let run = with_outcome($name(w, 1)).await;
                value(run, Outcome::Executed);
                let job = concat!("a18::", stringify!($name));
                assert!(!log.find(Level::WARN, job).is_empty(), "a warning for {job}");
                for _ in 0..2 {
                    refused(ErrorKind::AlreadyCompleted, $name(w, 1)).await;
                }
                assert_eq!(w.row(&$key.replace("<id>", "1")).await.result, None);
            )+
        }
        const LOSSY: usize = [$(stringify!($name)),+].len();
    };
}

lossy! {
    nan "a18-nan:<id>": f64 = f64::NAN;
    infinity "a18-infinity:<id>": f32 = f32::NEG_INFINITY;
    deep_nan "a18-deep-nan:<id>": Vec<Option<f64>> = vec![Some(1.0), Some(f64::NAN)];
    event_nan "a18-event-nan:<id>": Event = Event::Moved { x: f64::NAN, y: 0.0 };
    pairs "a18-pairs:<id>": HashMap<(u8, u8), u8> = HashMap::from([((1, 2), 3)]);
}

pub(super) async fn a18_values_that_json_cannot_carry_are_completed_without(site: &Site) {
    lossy(&site.worker().await).await;
    assert_eq!(site.ledger.total(), LOSSY, "each ran once");
}
