//! All jobs of the linked crates: what is known of each, and the pairs that could share a key.

#![allow(dead_code, reason = "the registry knows a job that nobody calls")]

use std::time::Duration;

use idem_runtime::{Error, ErrorRule, Idem, Job, Mode, OnStale, idempotent, jobs};
use idem_tests::Capture;
use tracing::Level;

#[idempotent(
    key = "registry-all:<id>|<day>",
    stale_after = "90s",
    on_stale = "retry",
    max_takeovers = 3,
    on_error = "by_mark",
    on_busy = "wait",
    wait_for = "7s",
    ttl = "3d",
    heartbeat = false,
    name = "registry.all"
)]
fn with_every_policy(id: u32, day: &str) -> Result<(), Error> {
    let _ = (id, day);
    Ok(())
}

mod defaults {
    use super::{Error, idempotent};

    #[idempotent(key = "registry-first:<id>")]
    pub(super) async fn first(id: u32) -> Result<u32, Error> {
        Ok(id)
    }

    #[idempotent(key = "registry-after:<id>", mode = "record_after")]
    pub(super) async fn after(id: u32) -> Result<u32, Error> {
        Ok(id)
    }
}

fn job(path: &str) -> &'static Job {
    let found: Vec<_> = jobs::all().filter(|job| job.path().ends_with(path)).collect();
    let [job] = found[..] else { panic!("one job at {path}, not {found:?}") };
    job
}

#[test]
fn every_job_is_listed_with_its_template_mode_and_policies() {
    let line = line!();
    let all = job("registry::with_every_policy");
    assert_eq!((all.name(), all.path()), ("registry.all", concat!(module_path!(), "::with_every_policy")));
    assert_eq!((all.template(), all.shape()), (&["registry-all:", "|", ""][..], "registry-all:<>|<>"));
    assert_eq!((all.mode(), all.lease(), all.heartbeat()), (Mode::LockFirst, Duration::from_secs(90), false));
    assert_eq!((all.stale_policy(), all.takeover_limit()), (OnStale::Retry, 3));
    assert_eq!(all.error_rule(), ErrorRule::ByMark);
    assert_eq!(all.wait_limit(), Some(Duration::from_secs(7)));
    assert_eq!(all.retention(), Some(Duration::from_hours(72)));
    let location = all.location();
    let (file, at) = location.rsplit_once(':').expect("file:line");
    assert!(file.ends_with("registry.rs"), "{location}");
    assert!((1..line).contains(&at.parse::<u32>().expect("a line")), "{location}");
}

#[test]
fn every_job_is_listed_with_the_defaults_of_its_mode() {
    let first = job("registry::defaults::first");
    assert_eq!(
        (first.mode(), first.lease(), first.heartbeat()),
        (Mode::LockFirst, Duration::from_mins(1), true)
    );
    assert_eq!((first.stale_policy(), first.error_rule()), (OnStale::Alert, ErrorRule::Hold));
    assert_eq!((first.wait_limit(), first.retention()), (None, None));
    let after = job("registry::defaults::after");
    assert_eq!((after.mode(), after.error_rule()), (Mode::RecordAfter, ErrorRule::Release));
    assert_eq!(after.retention(), Some(Duration::from_hours(24)));
}

mod overlapping {
    use super::{Error, idempotent};

    #[idempotent(key = "registry-pair:<id>:created")]
    pub(super) async fn one(id: u32) -> Result<u32, Error> {
        Ok(id)
    }

    #[idempotent(key = "registry-pair:<id>:<event>")]
    pub(super) async fn other(id: u32, event: &str) -> Result<u32, Error> {
        let _ = event;
        Ok(id)
    }

    #[idempotent(key = "registry-meant:<id>", allow_overlap(also_meant))]
    pub(super) async fn meant(id: u32) -> Result<u32, Error> {
        Ok(id)
    }

    #[idempotent(key = "registry-meant:<number>")]
    pub(super) async fn also_meant(number: u32) -> Result<u32, Error> {
        Ok(number)
    }
}

/// What `check` says of the pair with this word in it.
fn said_of(word: &str) -> Option<String> {
    let overlaps = jobs::check().expect_err("the pair above at least");
    overlaps.to_string().lines().find(|line| line.contains(word)).map(str::to_owned)
}

#[test]
fn an_overlap_names_both_functions_and_where_they_stand() {
    let said = said_of("registry-pair").expect("the pair");
    for path in ["registry::overlapping::one", "registry::overlapping::other"] {
        let job = job(path);
        assert!(said.contains(job.path()), "{said}");
        assert!(said.contains(&job.location()), "{said}");
        assert!(said.contains(job.shape()), "{said}");
    }
    assert_eq!(said_of("registry-meant"), None, "one that is meant");
    assert_eq!(said_of("registry-all"), None, "one that shares nothing");
}

#[tokio::test]
async fn an_overlap_is_an_error_in_the_log_when_an_idem_is_built() {
    let log = Capture::here();
    let idem = Idem::connect("memory:").await.expect("an `Idem`");
    let [event] = &log.find(Level::ERROR, "registry-pair")[..] else { panic!("one event of the pair") };
    assert!(event.says("registry::overlapping::one") && event.says("registry.rs:"), "{event:?}");
    drop(idem);
}
