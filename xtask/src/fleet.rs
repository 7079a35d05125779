use std::env;

use anyhow::{Context as _, Result};

use crate::{
    interrupt::Interrupt,
    server::{Missing, Running, SERVERS, Server},
};

/// The servers of a run: started for it, or named by the environment. Those that were started stop when it is
/// dropped, the latest first.
#[derive(Debug)]
pub(crate) struct Fleet {
    purpose: Purpose,
    running: Vec<(&'static Server, Running)>,
    missing: Vec<(&'static Server, Missing)>,
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
        for server in SERVERS.iter().filter(|server| purpose.needs(server)) {
            let found = fleet.find(server, interrupt);
            interrupt.ensure_none()?;
            match found {
                Ok(running) => fleet.running.push((server, running)),
                Err(reason) => {
                    let remedy = format!("{}, or name one in {}", server.install, purpose.variable(server));
                    fleet.missing.push((server, Missing { reason: format!("{reason:#}"), remedy }));
                }
            }
        }
        Ok(fleet)
    }

    /// A server that is started for the caller alone, whatever the environment names.
    pub(crate) fn own(name: &str, interrupt: &Interrupt) -> Result<Running> {
        let server = SERVERS.iter().find(|server| server.name == name);
        let server = server.with_context(|| format!("there is no server for {name}"))?;
        let alone = Fleet { purpose: Purpose::Test, running: Vec::new(), missing: Vec::new() };
        (server.start)(&alone, interrupt).with_context(|| server.install)
    }

    fn find(&self, server: &Server, interrupt: &Interrupt) -> Result<Running> {
        match env::var(self.purpose.variable(server)) {
            Ok(url) if !url.is_empty() => Ok(Running::elsewhere(url)),
            _ => (server.start)(self, interrupt),
        }
    }

    /// How to reach one that is there.
    pub(crate) fn url(&self, server: &str) -> Option<&str> {
        self.running
            .iter()
            .find(|(running, _)| running.name == server)
            .map(|(_, running)| running.url.as_str())
    }

    /// Whether it was started for this run.
    pub(crate) fn has_started(&self, server: &str) -> bool {
        self.running.iter().any(|(kind, running)| kind.name == server && running.is_ours())
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = (&'static Server, &Missing)> {
        self.missing.iter().map(|(server, missing)| (*server, missing))
    }

    /// The variables that name the servers, with their values.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        self.running.iter().map(|(server, running)| (self.purpose.variable(server), running.url.as_str()))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        while self.running.pop().is_some() {}
    }
}

impl Purpose {
    fn variable(self, server: &Server) -> String {
        let purpose = match self {
            Purpose::Test => "TEST",
            Purpose::Bench => "BENCH",
        };
        format!("IDEM_{purpose}_{}", server.variable)
    }

    fn needs(self, server: &Server) -> bool {
        match self {
            Purpose::Test => true,
            Purpose::Bench => server.measured,
        }
    }
}
