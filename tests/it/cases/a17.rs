//! Unit, `None`, `false`, 0 and the empty text are results like any other: they are stored, and replayed.

use std::collections::BTreeMap;

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, with_outcome};
use idem_tests::{Capture, Child, child::Parent};
use serde::{Deserialize, Serialize};
use tracing::Level;

use super::{
    call::{executed, executed_sync, refused, replayed, replayed_sync, value},
    site::{Site, Worker},
};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Fieldless {}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped(Option<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    Nothing,
    Something(Option<u8>),
}

/// One job per value, and one function that calls them all.
macro_rules! values {
    ($($name:ident $key:literal: $type:ty = $value:expr;)+) => {
        $(
            #[idempotent(key = $key, idem = w.idem)]
            async fn $name(w: &Worker, id: u32) -> Result<$type, Error> {
                w.effect(stringify!($name));
                Ok($value).inspect(|_| tracing::trace!(id))
            }
        )+

        const NAMES: &[&str] = &[$(stringify!($name)),+];

        async fn all(w: &Worker, outcome: Outcome) {
            $(
                let expected: $type = $value;
                let given = value(with_outcome($name(w, 1)).await, outcome);
                assert_eq!(format!("{given:?}"), format!("{expected:?}"), stringify!($name));
            )+
        }
    };
}

values! {
    unit "a17-unit:<id>": () = ();
    nothing "a17-none:<id>": Option<u32> = None;
    no_text "a17-no-text:<id>": Option<String> = None;
    no_unit "a17-no-unit:<id>": Option<()> = None;
    falsehood "a17-false:<id>": bool = false;
    zero "a17-zero:<id>": u32 = 0;
    negative_zero "a17-negative-zero:<id>": f64 = -0.0;
    text "a17-text:<id>": String = String::new();
    null_text "a17-null-text:<id>": String = "null".to_owned();
    list "a17-list:<id>": Vec<u8> = Vec::new();
    no_lists "a17-lists:<id>": Vec<Vec<u8>> = vec![vec![], vec![]];
    nones "a17-nones:<id>": Vec<Option<u8>> = vec![None, None];
    map "a17-map:<id>": BTreeMap<String, u8> = BTreeMap::new();
    unit_struct "a17-unit-struct:<id>": Unit = Unit;
    fieldless "a17-fieldless:<id>": Fieldless = Fieldless {};
    tuple "a17-tuple:<id>": (u8,) = (0,);
    unit_tuple "a17-units:<id>": ((), ()) = ((), ());
    wrapped "a17-wrapped:<id>": Wrapped = Wrapped(None);
    variant "a17-variant:<id>": Answer = Answer::Nothing;
    something "a17-something:<id>": Answer = Answer::Something(None);
    inner_failure "a17-inner:<id>": Result<(), String> = Err(String::new());
    nul "a17-nul:<id>": String = "\0".to_owned();
}

pub(super) async fn a17_an_empty_value_is_replayed(site: &Site) {
    let (w, other) = (site.worker().await, site.worker().await);
    all(&w, Outcome::Executed).await;
    all(&w, Outcome::Replayed).await;
    all(&other, Outcome::Replayed).await;
    for name in NAMES {
        assert_eq!(site.effects(name), 1, "{name}");
    }
}

pub(super) async fn a17_an_empty_value_is_replayed_in_another_process(site: &Site) {
    all(&site.worker().await, Outcome::Executed).await;
    let mut child = Child::spawn(&mut site.child("cases::a17::another_process"));
    child.expect("replayed");
    assert!(child.wait().success(), "{}", child.transcript());
    assert_eq!(site.ledger.total(), NAMES.len());
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn another_process() {
    let Some(parent) = Parent::attach() else { return };
    all(&Worker::of_parent().await, Outcome::Replayed).await;
    parent.say("replayed");
}

#[idempotent(key = "a17-sync:<id>", idem = w.idem)]
fn quietly(w: &Worker, id: u32) -> Result<(), Error> {
    w.effect(&id.to_string());
    Ok(())
}

#[idempotent(key = "a17-mail:<id>", mode = "record_after", idem = w.idem)]
async fn mail(w: &Worker, id: u32) -> Result<Option<u32>, Error> {
    w.effect(&id.to_string());
    Ok(None)
}

pub(super) async fn a17_every_mode_and_shape_replays_nothing(site: &Site) {
    let w = site.worker().await;
    executed_sync(|| quietly(&w, 1));
    replayed_sync(|| quietly(&w, 1));
    assert_eq!(executed(mail(&w, 2)).await, None);
    assert_eq!(replayed(mail(&w, 2)).await, None);
    assert_eq!((site.effects("1"), site.effects("2")), (1, 1));
    assert_eq!(
        w.row("a17-mail:2").await.result.as_deref(),
        Some("null"),
        "which is not the lack of a result"
    );
}

#[idempotent(key = "a17-some-none:<id>", idem = w.idem)]
async fn some_none(w: &Worker, id: u32) -> Result<Option<Option<u32>>, Error> {
    w.effect(&id.to_string());
    Ok(Some(None))
}

#[idempotent(key = "a17-some-unit:<id>", idem = w.idem)]
async fn some_unit(w: &Worker, id: u32) -> Result<Vec<Option<()>>, Error> {
    w.effect(&id.to_string());
    Ok(vec![None, Some(())])
}

#[idempotent(key = "a17-some-wrapped:<id>", idem = w.idem)]
async fn some_wrapped(w: &Worker, id: u32) -> Result<(u8, Option<Wrapped>), Error> {
    w.effect(&id.to_string());
    Ok((1, Some(Wrapped(None))))
}

/// The first run has its value; repeats are told that there is none, and the log says so once.
pub(super) async fn a17_what_json_cannot_carry_back_is_completed_without(site: &Site) {
    let log = Capture::everywhere();
    let before = |job: &str| log.find(Level::WARN, job).len();
    let w = site.worker().await;
    assert_eq!(executed(some_none(&w, 1)).await, Some(None));
    assert_eq!(executed(some_unit(&w, 2)).await, [None, Some(())]);
    assert_eq!(executed(some_wrapped(&w, 3)).await, (1, Some(Wrapped(None))));
    for job in ["a17::some_none", "a17::some_unit", "a17::some_wrapped"] {
        assert!(before(job) >= 1, "a warning for {job}");
    }
    refused(ErrorKind::AlreadyCompleted, some_none(&w, 1)).await;
    refused(ErrorKind::AlreadyCompleted, some_unit(&w, 2)).await;
    refused(ErrorKind::AlreadyCompleted, some_wrapped(&w, 3)).await;
    for key in ["a17-some-none:1", "a17-some-unit:2", "a17-some-wrapped:3"] {
        assert_eq!(w.row(key).await.result, None);
    }
    assert_eq!(site.ledger.total(), 3);
}

#[idempotent(key = "a17-unstored:<id>", replay = false, idem = w.idem)]
async fn unstored(w: &Worker, id: u32) -> Result<u32, Error> {
    w.effect(&id.to_string());
    Ok(0)
}

pub(super) async fn a17_no_result_is_told_apart_from_an_empty_one(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(unstored(&w, 1)).await, 0);
    refused(ErrorKind::AlreadyCompleted, unstored(&w, 1)).await;
    assert_eq!(w.row("a17-unstored:1").await.result, None);
    assert_eq!(site.effects("1"), 1);
}
