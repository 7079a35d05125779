//! Everything that can happen to keys, so that each statement there is has been sent.

use std::time::Duration;

use idem_runtime::{Builder, Resolution, Resolved, idempotent, record::Status};
use tokio::task::JoinSet;

use super::{
    call::{Fault, executed, failed, refused, replayed, took_over},
    gate::Gate,
    site::Worker,
};

#[idempotent(key = "life:<id>", stale_after = "1s", idem = w.idem)]
pub(crate) async fn held(w: &Worker, id: &str, gate: &Gate) -> Result<String, Fault> {
    w.effect(id);
    gate.pass().await;
    Ok(id.to_owned())
}

#[idempotent(key = "life-plain:<id>", idem = w.idem)]
pub(crate) async fn plain(w: &Worker, id: &str) -> Result<String, Fault> {
    w.effect(id);
    Ok(id.to_owned())
}

#[idempotent(key = "life-mail:<id>", mode = "record_after", idem = w.idem)]
pub(crate) async fn mail(w: &Worker, id: &str) -> Result<String, Fault> {
    w.effect(id);
    Ok(id.to_owned())
}

#[idempotent(key = "life-unsure:<id>", idem = w.idem)]
async fn unsure(w: &Worker, id: &str) -> Result<u32, Fault> {
    w.effect(id);
    Err(Fault::own("nobody knows"))
}

#[idempotent(key = "life-again:<id>", on_stale = "retry", on_error = "hold", idem = w.idem)]
async fn again(w: &Worker, id: &str, fails: bool) -> Result<u32, Fault> {
    w.effect(id);
    if fails { Err(Fault::own("at first")) } else { Ok(7) }
}

#[idempotent(key = "life-released:<id>", on_error = "release", idem = w.idem)]
async fn released(w: &Worker, id: &str) -> Result<u32, Fault> {
    w.effect(id);
    Err(Fault::own("not this time"))
}

/// What is released may be purged at once, and stale claims are looked for often.
pub(crate) fn short_lived(builder: Builder) -> Builder {
    builder.keep_released_for(Duration::ZERO).watch_every(Duration::from_millis(50))
}

/// Claims, renews, completes, replays, records, flags, resolves, takes over, releases, purges and forgets. What stays
/// afterwards is [`ROWS`] rows and [`AUDITED`] audit lines.
pub(crate) async fn live(w: &Worker, id: &str) {
    let gate = Gate::new();
    let running = tokio::spawn({
        let (w, id, gate) = (w.clone(), id.to_owned(), gate.clone());
        async move { executed(held(&w, &id, &gate)).await }
    });
    gate.arrived().await;
    let key = format!("life:{id}");
    let claimed = w.row(&key).await.lease_until;
    w.row_such_that(&key, "renewed", |row| row.lease_until > claimed).await;
    gate.open();
    running.await.expect("no panic");
    replayed(held(w, id, &gate)).await;

    executed(mail(w, id)).await;
    replayed(mail(w, id)).await;

    failed(unsure(w, id)).await;
    refused(idem_runtime::ErrorKind::NeedsReview, unsure(w, id)).await;
    let resolution = Resolution::Completed(Some(7.into()));
    let resolved = w.idem.resolve(format!("life-unsure:{id}"), resolution).note("looked").await;
    assert!(matches!(resolved.expect("an answer"), Resolved::Changed { .. }));
    assert_eq!(replayed(unsure(w, id)).await, 7);

    failed(again(w, id, true)).await;
    assert_eq!(took_over(again(w, id, false)).await, 7);

    failed(released(w, id)).await;
    assert_eq!(w.idem.purge().await.expect("a purge"), 1, "the released row");

    let forgotten = w.idem.forget(&key).force().note("test").await.expect("an answer");
    assert!(matches!(forgotten, Resolved::Changed { .. }), "{forgotten:?}");
    assert!(w.find(&key).await.is_none());

    let audited = w.idem.audit(&key).await.expect("lines");
    assert_eq!(audited.last().map(|line| line.audit.to_status.as_str()), Some("forgotten"));

    crowd(w, id).await;
}

/// Many at once, so that statements are shared.
async fn crowd(w: &Worker, id: &str) {
    for _ in 0..2 {
        let mut calls = JoinSet::new();
        for n in 0..CROWD {
            let (w, id) = (w.clone(), format!("{id}-{n}"));
            calls.spawn(async move { plain(&w, &id).await.map_err(Fault::idem) });
        }
        calls.join_all().await.into_iter().for_each(|call| drop(call.expect("done")));
    }
    for n in 0..CROWD {
        let row = w.row(&format!("life-plain:{id}-{n}")).await;
        assert_eq!(row.status, Status::Completed);
        assert_eq!(w.effects(&format!("{id}-{n}")), 1);
    }
}

const CROWD: i64 = 40;

/// The rows that a life leaves behind.
pub(crate) const ROWS: i64 = 3 + CROWD;

/// The audit lines that it leaves behind: a review, its resolution, a takeover, and what was forgotten.
pub(crate) const AUDITED: i64 = 4;
