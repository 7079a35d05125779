use std::env;

use anyhow::Result;

use crate::{
    interrupt::Interrupt,
    server::{Missing, Running, SERVERS, Server},
};

/// The servers of a run: started for it, or named by the environment. Those that were started stop when it is
/// dropped, the latest first.
#[derive(Debug)]
pub(crate) struct Fleet {
    purpose: Purpose,
    running: Vec<(&'static str, Running)>,
    missing: Vec<(&'static str, Missing)>,
}

/// Whose environment the URLs are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Test,
    Bench,
}

impl Fleet {
    pub(crate) fn start(purpose: Purpose, interrupt: &Interrupt) -> Result<Fleet> {
        let mut fleet = Fleet { purpose, running: Vec::new(), missing: Vec::new() };
        for server in SERVERS {
            let found = fleet.find(server, interrupt);
            interrupt.ensure_none()?;
            match found {
                Ok(running) => fleet.running.push((server.name, running)),
                Err(reason) => {
                    let remedy =
                        format!("{}, or name a server in {}", server.install, purpose.variable(server.name));
                    fleet.missing.push((server.name, Missing { reason: format!("{reason:#}"), remedy }));
                }
            }
        }
        Ok(fleet)
    }

    fn find(&self, server: &Server, interrupt: &Interrupt) -> Result<Running> {
        match env::var(self.purpose.variable(server.name)) {
            Ok(url) if !url.is_empty() => Ok(Running::elsewhere(url)),
            _ => (server.start)(self, interrupt),
        }
    }

    /// How to reach one that is there.
    pub(crate) fn url(&self, server: &str) -> Option<&str> {
        self.running.iter().find(|(name, _)| *name == server).map(|(_, running)| running.url.as_str())
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = (&'static str, &Missing)> {
        self.missing.iter().map(|(name, missing)| (*name, missing))
    }

    /// The variables that name the servers, with their values.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        self.running.iter().map(|(name, running)| (self.purpose.variable(name), running.url.as_str()))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        while self.running.pop().is_some() {}
    }
}

impl Purpose {
    fn variable(self, server: &str) -> String {
        let purpose = match self {
            Purpose::Test => "TEST",
            Purpose::Bench => "BENCH",
        };
        format!("IDEM_{purpose}_{}_URL", server.to_uppercase())
    }
}
