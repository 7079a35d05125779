use std::process::Command;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::{interrupt::Interrupt, program};

/// Gives the template parser texts that no one thought of, on nightly and with cargo-fuzz.
#[derive(Args, Debug)]
pub(crate) struct Fuzz {
    /// For how long.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

impl Fuzz {
    pub(crate) fn of_seconds(seconds: u32) -> Fuzz {
        Fuzz { seconds }
    }

    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        if let Some(missing) = missing(interrupt) {
            bail!("{missing}");
        }
        let mut command = nightly();
        command.args(["fuzz", "run", "template", "--", "-dict=fuzz/template.dict", "-max_len=96"]);
        let status = program::run(command.arg(format!("-max_total_time={}", self.seconds)), interrupt)?;
        ensure!(status.success(), "a text breaks a law of templates; it is in fuzz/artifacts/template");
        Ok(())
    }
}

/// What is not here, and how to get it.
pub(crate) fn missing(interrupt: &Interrupt) -> Option<&'static str> {
    let is_here = |command: &mut Command| program::output(command, interrupt).is_ok();
    if !is_here(nightly().arg("--version")) {
        return Some("no nightly compiler here; `rustup toolchain install nightly` installs it");
    }
    if !is_here(nightly().args(["fuzz", "--version"])) {
        return Some("no cargo-fuzz here; `cargo install cargo-fuzz --locked` installs it");
    }
    None
}

/// `cargo +nightly`: rustup's, since the one that started us is of one toolchain.
fn nightly() -> Command {
    let mut command = Command::new("cargo");
    // What is missing is said, and not fetched behind one's back.
    command.arg("+nightly").current_dir(program::workspace()).env("RUSTUP_AUTO_INSTALL", "0");
    command
}
