//! How long an ending counts.

use idem_runtime::{Idem, Outcome, idempotent, with_outcome};

use super::{
    call::{Fault, Runs, body_fails, failed, row},
    raw::Column,
    rows::PAST,
    subject::Subject,
};

#[idempotent(key = "conf-ttl:<id>", ttl = "1h", idem = idem)]
async fn hourly(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn a_completed_key_past_its_ttl_lives_anew(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    hourly(1, &idem, &runs).await.expect("done");
    let old = row(&idem, "conf-ttl:1").await;
    s.raw.set("conf-ttl:1", Column::ExpiresAt(Some(PAST))).await;
    let (again, outcome) = with_outcome(hourly(1, &idem, &runs)).await;
    assert_eq!((again.expect("done"), outcome), (2, Some(Outcome::Executed)));
    let new = row(&idem, "conf-ttl:1").await;
    assert_eq!((new.attempt, new.takeovers, new.result.as_deref()), (1, 0, Some("2")));
    assert!(new.fence > old.fence && new.expires_at > old.expires_at);
}

#[idempotent(key = "conf-ttl-after:<id>", mode = "record_after", ttl = "1h", idem = idem)]
async fn hourly_mail(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    Ok(runs.enter())
}

pub(super) async fn a_recorded_effect_past_its_ttl_happens_anew(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    hourly_mail(1, &idem, &runs).await.expect("sent");
    s.raw.set("conf-ttl-after:1", Column::ExpiresAt(Some(PAST))).await;
    assert_eq!(hourly_mail(1, &idem, &runs).await.expect("sent"), 2);
    assert_eq!(hourly_mail(1, &idem, &runs).await.expect("replayed"), 2, "the new one counts");
}

#[idempotent(key = "conf-ttl-failed:<id>", ttl = "1h", on_error = "record", idem = idem)]
async fn fails_hourly(id: u32, idem: &Idem, runs: &Runs) -> Result<usize, Fault> {
    if runs.enter() == 1 { body_fails("no") } else { Ok(2) }
}

pub(super) async fn a_failure_past_its_ttl_lives_anew(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    failed(fails_hourly(1, &idem, &runs).await);
    s.raw.set("conf-ttl-failed:1", Column::ExpiresAt(Some(PAST))).await;
    assert_eq!(fails_hourly(1, &idem, &runs).await.expect("done"), 2);
    let read = row(&idem, "conf-ttl-failed:1").await;
    assert_eq!((read.attempt, read.error), (1, None), "nothing of the old life is left");
}

pub(super) async fn purging_frees_what_is_past_its_ttl(s: &Subject) {
    let (idem, runs) = (s.idem().await, Runs::default());
    for id in 1..=3 {
        hourly(id, &idem, &runs).await.expect("done");
    }
    s.raw.set("conf-ttl:2", Column::ExpiresAt(Some(PAST))).await;
    assert_eq!(idem.purge().await.expect("a purge"), 1);
    assert_eq!(idem.lookup("conf-ttl:2").await.expect("a look-up"), None);
}

#[idempotent(key = "conf-ttl-ever:<id>", idem = idem)]
async fn for_ever(id: u32, idem: &Idem) -> Result<(), Fault> {
    Ok(())
}

#[idempotent(key = "conf-ttl-20:<id>", ttl = "7305d", idem = idem)]
async fn for_20_years(id: u32, idem: &Idem) -> Result<(), Fault> {
    Ok(())
}

pub(super) async fn a_ttl_may_be_20_years_or_none(s: &Subject) {
    let idem = s.idem().await;
    for_ever(1, &idem).await.expect("done");
    assert_eq!(row(&idem, "conf-ttl-ever:1").await.expires_at, None);
    for_20_years(1, &idem).await.expect("done");
    let read = row(&idem, "conf-ttl-20:1").await;
    let days = (read.expires_at.expect("an expiry") - read.fence) / 1_000_000 / 86_400;
    assert_eq!(days, 7305, "past 2038");
}
