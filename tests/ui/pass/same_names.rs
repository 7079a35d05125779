//! Jobs of one name, in sibling modules, in two impls, of two types, of a trait and of a type.

#![allow(clippy::unused_self)]

use idem_runtime::{Error, idempotent, jobs};

use super::{memory, once_sync, this_key};

mod left {
    use super::{Error, idempotent, memory};

    #[idempotent(key = "same_names:left:<id>", key_fn = run_key, idem = memory())]
    pub(super) fn run(id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}

mod right {
    use super::{Error, idempotent, memory};

    #[idempotent(key = "same_names:right:<id>", key_fn = run_key, idem = memory())]
    pub(super) fn run(id: u8) -> Result<u8, Error> {
        Ok(id + 1)
    }
}

struct North;

struct South;

trait Work {
    fn run(&self, id: u8) -> Result<String, Error>;
}

impl North {
    #[idempotent(key = "same_names:north:<id>", idem = memory())]
    fn run(&self, id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }
}

impl South {
    #[idempotent(key = "same_names:south:<id>", idem = memory())]
    fn run(&self, id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }
}

impl Work for North {
    #[idempotent(key = "same_names:work_north:<id>", idem = memory())]
    fn run(&self, id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }
}

impl Work for South {
    #[idempotent(key = "same_names:work_south:<id>", idem = memory())]
    fn run(&self, id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }
}

#[test]
fn b2_jobs_of_one_name_are_two() {
    assert_eq!(once_sync(|| left::run(1)), 1);
    assert_eq!(once_sync(|| right::run(1)), 2);
    assert_eq!(left::run_key(&1).expect("a key").to_string(), "same_names:left:1");
    assert_eq!(right::run_key(&1).expect("a key").to_string(), "same_names:right:1");
    assert_eq!(once_sync(|| North.run(1)), "same_names:north:1");
    assert_eq!(once_sync(|| South.run(1)), "same_names:south:1");
    assert_eq!(once_sync(|| Work::run(&North, 1)), "same_names:work_north:1");
    assert_eq!(once_sync(|| Work::run(&South, 1)), "same_names:work_south:1");
}

#[test]
fn b2_jobs_of_one_name_are_told_apart_by_where_they_stand() {
    let here = jobs::all().filter(|job| job.path().contains("same_names::"));
    let places: std::collections::BTreeSet<_> = here.map(idem_runtime::Job::location).collect();
    assert_eq!(places.len(), 6, "{places:?}");
}
