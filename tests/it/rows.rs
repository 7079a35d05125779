//! A claim as a store takes it, for tests that look at statements and not at what they decide.

use std::time::Duration;

use idem_runtime::store::{Moment, NewRow};
use idem_tests::table::foreign_claim;

pub(crate) const OWNER: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";
pub(crate) const LEASE: Duration = Duration::from_mins(1);

pub(crate) fn claim() -> NewRow {
    NewRow { owner: Some(OWNER.to_owned()), attempt: 1, lease: Moment::In(LEASE), ..foreign_claim() }
}
