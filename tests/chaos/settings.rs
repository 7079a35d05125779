use std::{env, time::Duration};

use idem_tests::Backend;

/// What a run is told by `cargo xtask chaos`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) backend: Backend,
    pub(crate) seed: u64,
    /// How long there are faults and new keys.
    pub(crate) length: Duration,
    pub(crate) broken: Option<Broken>,
}

/// What a worker does wrong on purpose, to see that the checker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It has its effect twice, now and then.
    Twice,
    /// It takes a lost claim for a success.
    Deaf,
    /// It returns without the effect, now and then.
    Skips,
    /// It finds nothing when it is asked.
    Lies,
    /// It runs jobs without Idem, now and then.
    Bypasses,
}

impl Settings {
    pub(crate) fn of_environment() -> Settings {
        let told = |name: &str| env::var(name).unwrap_or_else(|_| panic!("`cargo xtask chaos` sets {name}"));
        let backend = told("IDEM_CHAOS_DB");
        let backend = Backend::DATABASES.into_iter().find(|known| known.name() == backend);
        Settings {
            backend: backend.expect("a database that we know"),
            seed: told("IDEM_CHAOS_SEED").parse().expect("a number"),
            length: Duration::from_secs_f64(told("IDEM_CHAOS_SECONDS").parse().expect("a number")),
            broken: Broken::of_environment(),
        }
    }
}

impl Broken {
    /// The variable is inherited by the workers.
    pub(crate) fn of_environment() -> Option<Broken> {
        match env::var("IDEM_CHAOS_BROKEN").ok()?.as_str() {
            "" => None,
            "twice" => Some(Broken::Twice),
            "deaf" => Some(Broken::Deaf),
            "skips" => Some(Broken::Skips),
            "lies" => Some(Broken::Lies),
            "bypasses" => Some(Broken::Bypasses),
            other => panic!("no worker is broken so that it {other}"),
        }
    }
}
