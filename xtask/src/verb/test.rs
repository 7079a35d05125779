use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use super::chaos::{self, Chaos};
use crate::{
    backend::Requirement,
    coverage::Coverage,
    fleet::{Fleet, Purpose},
    interrupt::Interrupt,
    program,
};

/// Runs every test, on servers that are found or started, says which back ends it covered, and ends with a short run of
/// `chaos` on each.
#[derive(Args, Debug)]
pub(crate) struct Test {
    /// Back ends without which the run is a failure.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Requirement::accepted())]
    require: Vec<String>,

    /// What the test binaries are told: filters, `--nocapture`, …
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl Test {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        let required = Requirement::new(&self.require);
        let fleet = Fleet::start(Purpose::Test, interrupt)?;
        required.ensure_present(&fleet)?;
        for (server, missing) in fleet.missing() {
            eprintln!("{} is missing, its tests are left out: {missing}", server.name);
        }

        let status = program::run(&mut self.tests(&fleet), interrupt)?;
        let listing = program::output(&mut self.listing(), interrupt);
        ensure!(listing.is_ok() || status.success(), "the tests do not build");
        let coverage = Coverage::of_listing(&listing?);
        coverage.report(&fleet, status.success());
        ensure!(status.success(), "there were failures");
        if !self.arguments.is_empty() {
            return Ok(());
        }
        required.ensure_covered(&coverage)?;
        let (ours, others): (Vec<_>, Vec<_>) =
            chaos::SERVERS.iter().partition(|name| fleet.has_started(name));
        for name in others {
            println!(
                "\nno chaos on {name}: a server that is not ours is not ended; `cargo xtask chaos` starts one"
            );
        }
        drop(fleet);
        Chaos::short(&ours).run(interrupt)
    }

    fn tests(&self, fleet: &Fleet) -> Command {
        let mut cargo = program::cargo();
        cargo.args(["test", "--workspace", "--all-features", "--no-fail-fast"]).envs(fleet.variables());
        cargo.arg("--").args(&self.arguments);
        for (server, _) in fleet.missing() {
            cargo.args(["--skip", server.suite]);
        }
        cargo
    }

    /// Of the integration binary alone, but with the packages and features of [`tests`](Self::tests), so that
    /// nothing is built again.
    fn listing(&self) -> Command {
        let mut cargo = program::cargo();
        cargo.args(["test", "--quiet", "--workspace", "--all-features", "--test", "it"]);
        cargo.arg("--").args(&self.arguments).args(["--list", "--format", "terse"]);
        cargo
    }
}
