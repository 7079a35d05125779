//! Jobs with a probe whose workers die at every point, twice in a row.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "a probe is as its job wants it")]

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use idem_runtime::{
    Error, Idem, Probe, current, idempotent,
    testing::{Kit, Point},
};

#[derive(Debug)]
enum Failure {
    Idem(Error),
    TimedOut,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// How the first call of the bank goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Answered,
    /// Booked, and the answer is lost.
    Unanswered,
    /// Nothing was booked.
    Refused,
}

/// The outside world, and a job that reaches into it.
struct Bank {
    idem: Idem,
    first: First,
    tells: bool,
    calls: Mutex<u32>,
    booked: Mutex<Vec<String>>,
}

impl Bank {
    fn at(kit: &Kit, first: First) -> Self {
        let idem = kit.idem().clone();
        Self { idem, first, tells: true, calls: Mutex::default(), booked: Mutex::default() }
    }

    fn book(&self) -> First {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls += 1;
        let ends = if *calls == 1 { self.first } else { First::Answered };
        if ends != First::Refused {
            self.booked.lock().expect("no panic in it").push(current().key().to_string());
        }
        ends
    }

    fn find(&self) -> Probe<String> {
        let booked = self.booked.lock().expect("no panic in it");
        match booked.iter().find(|booked| **booked == current().key().as_str()) {
            _ if !self.tells => Probe::Unknown,
            Some(booked) => Probe::Happened(booked.clone()),
            None => Probe::DidNotHappen,
        }
    }

    fn effects(&self) -> usize {
        self.booked.lock().expect("no panic in it").len()
    }

    async fn was_booked(&self, _: &u64) -> Probe<String> {
        tokio::task::yield_now().await;
        let found = self.find();
        tokio::task::yield_now().await;
        found
    }

    #[idempotent(key = "die-asked:<id>", stale_after = "30s", on_stale = probe(Self::was_booked), idem = self.idem)]
    async fn pay(&self, id: u64) -> Result<String, Failure> {
        tokio::task::yield_now().await;
        let booked = self.book();
        tokio::task::yield_now().await;
        if booked == First::Answered { Ok(current().key().to_string()) } else { Err(Failure::TimedOut) }
    }

    fn was_booked_at_once(&self, _: &u64) -> Probe<String> {
        self.find()
    }

    #[idempotent(key = "die-asked-at-once:<id>", stale_after = "30s", on_stale = probe(Self::was_booked_at_once), idem = self.idem)]
    fn pay_at_once(&self, id: u64) -> Result<String, Failure> {
        let booked = self.book();
        if booked == First::Answered { Ok(current().key().to_string()) } else { Err(Failure::TimedOut) }
    }
}

const OVER: Duration = Duration::from_secs(31);

#[tokio::test]
async fn wherever_its_workers_die_a_truthful_probe_makes_it_one_effect() {
    let mut died = 0;
    for first in [First::Answered, First::Unanswered, First::Refused] {
        for &once in Point::ALL {
            for &twice in Point::ALL {
                let kit = Kit::new().await.expect("a kit");
                let bank = Bank::at(&kit, first);
                for point in [once, twice] {
                    died += usize::from(kit.crash_at(point, bank.pay(1)).await.is_none());
                    kit.advance(OVER);
                }
                let place = format!("dead at {once:?} and {twice:?}, the bank {first:?}");
                let paid = match bank.pay(1).await {
                    Err(Failure::TimedOut) => bank.pay(1).await,
                    paid => paid,
                };
                assert_eq!(paid.expect(&place), "die-asked:1", "{place}");
                assert_eq!(bank.effects(), 1, "{place}");

                let kit = Kit::new().await.expect("a kit");
                let bank = Bank::at(&kit, first);
                for point in [once, twice] {
                    kit.crash_at_sync(point, || bank.pay_at_once(1));
                    kit.advance(OVER);
                }
                let paid = match bank.pay_at_once(1) {
                    Err(Failure::TimedOut) => bank.pay_at_once(1),
                    paid => paid,
                };
                assert_eq!(paid.expect(&place), "die-asked-at-once:1", "{place}");
                assert_eq!(bank.effects(), 1, "{place}");
            }
        }
    }
    assert!(died > 300, "{died} workers died");
}

#[tokio::test]
async fn wherever_its_worker_dies_a_probe_that_cannot_tell_runs_nothing_again() {
    for &point in Point::ALL {
        let kit = Kit::new().await.expect("a kit");
        let bank = Bank { tells: false, ..Bank::at(&kit, First::Unanswered) };
        bank.pay(1).await.expect_err("no answer");
        kit.crash_at(point, bank.pay(1)).await;
        kit.advance(OVER);
        let paid = bank.pay(1).await;
        assert!(matches!(paid, Err(Failure::Idem(Error::NeedsReview { .. }))), "dead at {point:?}: {paid:?}");
        assert_eq!(bank.effects(), 1, "dead at {point:?}");
    }
}
