//! What can be asked for, one file per verb.

mod bench;
mod chaos;
mod ci;
mod docs;
mod fuzz;
mod servers;
mod test;

use anyhow::Result;
use clap::Subcommand;

use crate::interrupt::Interrupt;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Test(test::Test),
    Ci(ci::Ci),
    Bench(bench::Bench),
    Chaos(chaos::Chaos),
    Fuzz(fuzz::Fuzz),
    Docs(docs::Docs),
    /// Starts the servers, says how to reach them, and keeps them until ctrl-c.
    Servers,
}

impl Verb {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        match self {
            Verb::Test(test) => test.run(interrupt),
            Verb::Ci(ci) => ci.run(interrupt),
            Verb::Bench(bench) => bench.run(interrupt),
            Verb::Chaos(chaos) => chaos.run(interrupt),
            Verb::Fuzz(fuzz) => fuzz.run(interrupt),
            Verb::Docs(docs) => docs.run(),
            Verb::Servers => servers::run(interrupt),
        }
    }
}
