//! The servers a run can have, one file each; and an interpreter, which is found or made like one.

mod account;
mod ending;
mod mysql;
mod pgbouncer;
mod postgres;
mod python;
mod secret;

use std::fmt;

use anyhow::{Result, bail};

pub(crate) use self::ending::Ending;
use crate::{fleet::Fleet, interrupt::Interrupt};

/// In the order they start; one may stand on those before it.
pub(crate) const SERVERS: &[Server] = &[postgres::SERVER, pgbouncer::SERVER, mysql::SERVER, python::SERVER];

/// A kind of server.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its name in `--require`.
    pub(crate) name: &'static str,
    /// What the variable that tells of it ends in: `POSTGRES_URL`.
    pub(crate) variable: &'static str,
    /// What the tests begin with that cannot do without it.
    pub(crate) suite: &'static str,
    /// Whether the benchmarks measure it.
    pub(crate) measured: bool,
    /// How to get one on a machine that has none.
    pub(crate) install: &'static str,
    /// Finds its programs and starts it, beside the servers that already run.
    pub(crate) start: fn(&Fleet, &Interrupt) -> Result<Running>,
}

/// A server that answers at `url`, or an interpreter that stands there, and stops when this is dropped if we have started it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) url: String,
    keeper: Option<Box<dyn Keeper>>,
}

/// Stops a server when it is dropped.
pub(crate) trait Keeper: fmt::Debug {
    /// Ends it before that; its data stay.
    fn end(&mut self, ending: Ending) -> Result<()> {
        bail!("there is no {ending:?} end for {self:?}")
    }

    /// Starts it again where it was, with the data that it had.
    fn start_again(&mut self) -> Result<()> {
        bail!("there is no other start for {self:?}")
    }
}

impl Running {
    pub(crate) fn kept_by(keeper: impl Keeper + 'static, url: String) -> Running {
        Running { url, keeper: Some(Box::new(keeper)) }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.keeper.is_some()
    }

    /// Who can end it and start it again; nobody ends what is somebody else's.
    pub(crate) fn keeper(&mut self) -> Result<&mut dyn Keeper> {
        match &mut self.keeper {
            Some(keeper) => Ok(&mut **keeper),
            None => bail!("it is not ours to end"),
        }
    }

    /// Somebody else's.
    pub(crate) fn elsewhere(url: String) -> Running {
        Running { url, keeper: None }
    }
}

/// Why there is no server, and what to do about it.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) reason: String,
    pub(crate) remedy: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}
