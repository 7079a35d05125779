//! The servers a run can have, one file each.

mod account;
mod mysql;
mod postgres;
mod secret;

use std::fmt;

use anyhow::Result;

use crate::{fleet::Fleet, interrupt::Interrupt};

/// In the order they start; one may stand on those before it.
pub(crate) const SERVERS: &[Server] = &[postgres::SERVER, mysql::SERVER];

/// A kind of server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The back end's name in tests, variables and `--require`.
    pub(crate) name: &'static str,
    /// How to get one on a machine that has none.
    pub(crate) install: &'static str,
    /// Finds its programs and starts it, beside the servers that already run.
    pub(crate) start: fn(&Fleet, &Interrupt) -> Result<Running>,
}

/// A server that answers at `url`, and stops when this is dropped if we have started it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) url: String,
    _keeper: Option<Box<dyn Keeper>>,
}

/// Stops a server when it is dropped.
pub(crate) trait Keeper: fmt::Debug {}

impl Running {
    pub(crate) fn kept_by(keeper: impl Keeper + 'static, url: String) -> Running {
        Running { url, _keeper: Some(Box::new(keeper)) }
    }

    /// Somebody else's.
    pub(crate) fn elsewhere(url: String) -> Running {
        Running { url, _keeper: None }
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
