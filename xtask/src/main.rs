//! `cargo xtask`: what this workspace is tested and measured with, servers included.

#[cfg(not(unix))]
compile_error!("xtask starts servers the Unix way; elsewhere run `cargo test --workspace --all-features`");

mod backend;
mod coverage;
mod document;
mod fleet;
mod interrupt;
mod program;
mod server;
mod summary;
mod verb;

use std::process::ExitCode;

use clap::Parser;

use crate::{interrupt::Interrupt, verb::Verb};

/// Tests, checks and measures the workspace on servers of its own.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = Interrupt::listen().and_then(|interrupt| cli.verb.run(&interrupt));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
