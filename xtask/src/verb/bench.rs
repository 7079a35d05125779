mod build;
mod jobs;
// The statistics are those of the benchmarks, so that all ratios mean the same.
#[path = "../../../benches/src/ratio.rs"]
mod ratio;
mod scratch;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};

use crate::{
    fleet::{Fleet, Purpose},
    interrupt::Interrupt,
    program,
};

/// Measures, on servers that are found or started with the durability they come with.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: Option<What>,

    /// What the benchmarks are told: `--quick`, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    Build(build::Build),
}

impl Bench {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        if let Some(What::Build(build)) = &self.what {
            return build.run(interrupt);
        }
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        bench: Bench,
    }

    #[test]
    fn what_is_not_a_bench_of_ours_is_handed_on() {
        let Cli { bench } = Cli::parse_from(["bench", "--quick", "--callers", "1,16"]);
        assert!(bench.what.is_none());
        assert_eq!(bench.arguments, ["--quick", "--callers", "1,16"]);

        let Cli { bench } = Cli::parse_from(["bench", "build", "--quick"]);
        assert!(matches!(bench.what, Some(What::Build(_))));
        assert!(bench.arguments.is_empty());
    }
}
