//! Phases of synchronous jobs, whose bodies are closures.

use std::sync::atomic::{AtomicU8, Ordering};

use idem_runtime::{Error, Key, OnError, Probe, idempotent, phase};

use super::{memory, once_sync};

static DONE: AtomicU8 = AtomicU8::new(0);

fn done(number: u8) -> Result<u8, Error> {
    DONE.fetch_add(1, Ordering::Relaxed);
    Key::from_text(&number.to_string()).map(|_| number)
}

#[idempotent(key = "phases_sync:resumed:<id>", on_error = "release", idem = memory())]
fn resumed(id: u8, fails: bool) -> anyhow::Result<u8> {
    let first = phase!("first", || Ok(done(id)?));
    for number in 0..2 {
        phase!("number", each = <number>, move || {
            done(number)?;
            Ok(())
        });
    }
    if fails {
        anyhow::bail!("after all numbers");
    }
    Ok(first + phase!("last", || done(1).map_err(Into::into)))
}

fn judge(_: &Error) -> OnError {
    OnError::Hold
}

fn find() -> Probe<u8> {
    Probe::Unknown
}

struct Sums(Vec<u8>);

impl Sums {
    #[idempotent(key = "phases_sync:options:<id>", idem = memory())]
    fn options(&mut self, id: u8) -> Result<u8, Error> {
        let made = || -> Result<u8, Error> { Ok(1) };
        phase!("pushed", mode = "record_after", || {
            self.0.push(id);
            Ok(())
        });
        let one = phase!("called", on_error = judge, || made());
        let two = phase!("typed", on_stale = "retry", || -> Result<u8, Error> { Ok(2) });
        let three = phase!("asked", on_stale = probe(find), || Ok(3));
        let four =
            phase!("asks", on_stale = probe(|| Probe::Happened(id)), on_error = judge, move || Ok(4 + id));
        Ok(one + two + three + four + self.helper()?)
    }

    fn helper(&self) -> Result<u8, Error> {
        let sum: u8 = phase!("helped", || Ok(self.0.iter().sum()));
        Ok(sum)
    }
}

#[test]
fn phases_of_synchronous_jobs_run_once() {
    resumed(7, true).expect_err("a failure");
    assert_eq!(DONE.load(Ordering::Relaxed), 3);
    assert_eq!(resumed(7, false).expect("a number"), 8);
    assert_eq!(DONE.load(Ordering::Relaxed), 4);
    assert_eq!(once_sync(|| Sums(vec![1]).options(5)), 21);
}
