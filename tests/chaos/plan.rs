//! What is decided by the seed alone: which job when, how it goes, and what is done to whom. Each has random numbers of
//! its own, so that what happens in one does not change another.

use std::time::Duration;

use fastrand::Rng;
use idem_tests::Backend;

use crate::{
    delivery::Fate,
    key::{Key, Kind},
};

/// What random numbers are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Keys,
    Bodies,
    Queue,
    Person,
    Server,
    Worker(usize),
}

/// The random numbers for the `n`th matter of one kind.
pub(crate) fn stream(seed: u64, of: Stream, n: u64) -> Rng {
    let of = match of {
        Stream::Keys => 0,
        Stream::Bodies => 1,
        Stream::Queue => 2,
        Stream::Person => 3,
        Stream::Server => 4,
        Stream::Worker(worker) => 100 + worker as u64,
    };
    let mut rng = Rng::with_seed(seed);
    for step in [of, n] {
        rng = Rng::with_seed(rng.u64(..) ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    rng
}

/// What is done to a worker. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// SIGKILL; another one starts in its place.
    Kill,
    /// It is told to shut down; another one starts in its place.
    Retire,
    /// SIGSTOP, and SIGCONT after a time.
    Stop(u64),
    /// Its connections are closed.
    Cut,
    /// Nothing passes, and nothing is closed before the end, and then only sometimes.
    Silence(u64),
    /// What it asks is done, and it does not hear of it.
    Swallow(u64),
    /// No connection can be made.
    Refuse(u64),
    /// All that passes is late by the first.
    Delay(u64, u64),
}

impl Harm {
    pub(crate) fn lasts(self) -> Option<Duration> {
        match self {
            Harm::Kill | Harm::Retire | Harm::Cut => None,
            Harm::Stop(ms)
            | Harm::Silence(ms)
            | Harm::Swallow(ms)
            | Harm::Refuse(ms)
            | Harm::Delay(_, ms) => Some(Duration::from_millis(ms)),
        }
    }
}

/// A harm in its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mishap {
    /// How long after the end of the last one.
    pub(crate) pause: Duration,
    pub(crate) harm: Harm,
    /// Whether the worker dies of it at the end.
    pub(crate) death: bool,
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Graceful,
    Immediate,
    Killed,
}

/// The harm that comes to one worker, without end.
#[derive(Debug)]
pub(crate) struct Harms {
    rng: Rng,
    backend: Backend,
}

impl Harms {
    pub(crate) fn of(seed: u64, worker: usize, backend: Backend) -> Harms {
        Harms { rng: stream(seed, Stream::Worker(worker), 0), backend }
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> Mishap {
        let rng = &mut self.rng;
        let pause = Duration::from_millis(rng.u64(500..5_000));
        // Leases are of one to three seconds.
        let time = if rng.bool() { rng.u64(1_200..6_000) } else { rng.u64(50..1_200) };
        let kinds = if self.backend == Backend::Sqlite { 5 } else { 15 };
        let harm = match rng.u32(0..kinds) {
            0 | 1 => Harm::Kill,
            2 | 3 => Harm::Stop(time),
            4 => Harm::Retire,
            5 | 6 => Harm::Cut,
            7 | 8 => Harm::Silence(time),
            9 | 10 => Harm::Swallow(time.min(2_500)),
            11 | 12 => Harm::Refuse(time),
            _ => Harm::Delay(rng.u64(20..500), time),
        };
        let death = rng.u8(..4) == 0;
        Mishap { pause, harm, death }
    }
}

/// The ends of the server, without end.
#[derive(Debug)]
pub(crate) struct Restarts {
    rng: Rng,
    backend: Backend,
    first: bool,
}

impl Restarts {
    pub(crate) fn of(seed: u64, backend: Backend) -> Restarts {
        Restarts { rng: stream(seed, Stream::Server, 0), backend, first: true }
    }

    /// The next one: how long after the last, and how long the server stays away.
    pub(crate) fn next(&mut self) -> (Duration, Ending, Duration) {
        let rng = &mut self.rng;
        let pause = if self.first { rng.u64(4_000..7_000) } else { rng.u64(12_000..40_000) };
        self.first = false;
        let endings: &[Ending] = match self.backend {
            Backend::Postgres => &[Ending::Graceful, Ending::Immediate, Ending::Killed],
            // An immediate end is the death of its process there.
            _ => &[Ending::Graceful, Ending::Killed],
        };
        let ending = endings[rng.usize(..endings.len())];
        (Duration::from_millis(pause), ending, Duration::from_millis(rng.u64(0..4_000)))
    }
}

/// The `n`th key.
pub(crate) fn key(seed: u64, number: u64) -> Key {
    let kind = Kind::ALL[stream(seed, Stream::Keys, number).usize(..Kind::ALL.len())];
    Key { kind, number }
}

/// How the body of the `n`th delivery of a key goes.
pub(crate) fn body(seed: u64, key: Key, n: u64, backend: Backend) -> (u64, u64, Fate) {
    let mut rng = stream(seed, Stream::Bodies, key.number * 1_000 + n);
    let mut part = |quick: u64, slow: u64| if rng.u8(..10) == 0 { rng.u64(..slow) } else { rng.u64(..quick) };
    let (before, after) = match key.kind {
        Kind::Report | Kind::Rebuild => (part(1_500, 4_000), part(1_500, 4_000)),
        Kind::Order => (part(900, 4_000), part(60, 1_500)),
        // There one that is open keeps everybody else from writing.
        Kind::Credit if backend == Backend::Sqlite => (part(5, 20), part(5, 20)),
        Kind::Credit => (part(30, 1_000), part(30, 1_000)),
        _ => (part(60, 1_500), part(60, 1_500)),
    };
    let fails = match key.kind {
        Kind::Notify => 30,
        Kind::Invoice | Kind::Credit => 15,
        _ => 3,
    };
    let fate = if rng.u32(..100) < fails {
        let fates = [
            Fate::FailsBeforeEffect,
            Fate::FailsAfterEffect,
            Fate::PanicsBeforeEffect,
            Fate::PanicsAfterEffect,
        ];
        fates[[0, 0, 0, 1, 1, 1, 2, 3][rng.usize(..8)]]
    } else {
        Fate::Succeeds
    };
    (before, after, fate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_all_of_a_plan() {
        let plan = |seed| {
            let mut harms = Harms::of(seed, 1, Backend::Postgres);
            let mut restarts = Restarts::of(seed, Backend::Postgres);
            let keys: Vec<_> = (0..50).map(|n| key(seed, n)).collect();
            let bodies: Vec<_> = keys.iter().map(|key| body(seed, *key, 2, Backend::Postgres)).collect();
            let times: Vec<_> = (0..50).map(|_| (harms.next(), restarts.next())).collect();
            format!("{keys:?} {bodies:?} {times:?}")
        };
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn two_workers_are_not_harmed_alike() {
        let harms = |worker| {
            let mut harms = Harms::of(7, worker, Backend::Postgres);
            (0..20).map(|_| harms.next()).collect::<Vec<_>>()
        };
        assert_ne!(harms(0), harms(1));
    }
}
