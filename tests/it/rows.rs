//! A claim as a store takes it, for tests that look at statements and not at what they decide.

use std::time::Duration;

use idem_runtime::{
    Status,
    store::{Moment, NewRow},
};

pub(crate) const OWNER: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";
pub(crate) const LEASE: Duration = Duration::from_mins(1);

pub(crate) fn claim() -> NewRow {
    NewRow {
        status: Status::Processing,
        job: None,
        template: None,
        mode: None,
        on_stale: None,
        owner: Some(OWNER.to_owned()),
        attempt: 1,
        takeovers: 0,
        lease: Moment::In(LEASE),
        fingerprint: None,
        result: None,
        error: None,
        worker: None,
        expires: Moment::Never,
        alerted: Moment::Never,
    }
}
