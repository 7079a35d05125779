use anyhow::{Result, ensure};
use clap::Args;

use crate::{
    fleet::{Fleet, Purpose},
    interrupt::Interrupt,
    program,
};

/// Measures, on servers that are found or started with the durability they come with.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// What the benchmarks are told: `--quick`, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl Bench {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        let fleet = Fleet::start(Purpose::Bench, interrupt)?;
        for (server, missing) in fleet.missing() {
            eprintln!("{} is missing and goes unmeasured: {missing}", server.name);
        }
        let mut cargo = program::cargo();
        cargo.args(["run", "--release", "--package", "idem-benches", "--"]).args(&self.arguments);
        let status = program::run(cargo.envs(fleet.variables()), interrupt)?;
        ensure!(status.success(), "the benchmarks failed");
        Ok(())
    }
}
