use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use super::test::Test;
use crate::{interrupt::Interrupt, program, summary::Summary};

/// Everything a change must pass, the quick steps first.
#[derive(Args, Debug)]
pub(crate) struct Ci {
    #[command(flatten)]
    test: Test,
}

/// The features of the runtime, each of which must build alone.
const FEATURES: [&str; 6] = ["sqlite", "postgres", "uuid", "chrono", "time", "jiff"];

const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

impl Ci {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        let mut summary = Summary::default();
        let mut take = |step: &str, command: &mut Command| {
            if !interrupt.raised() {
                summary.step(step, || passes(command, interrupt));
            }
        };

        take("fmt", program::cargo().args(["fmt", "--all", "--check"]));
        let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
        take("clippy", program::cargo().args(clippy).args(DENY_WARNINGS));
        let bare = ["clippy", "--package", "idem-runtime", "--no-default-features"];
        take("no features", program::cargo().args(bare).args(DENY_WARNINGS));
        for feature in FEATURES {
            let step = format!("feature {feature}");
            take(&step, program::cargo().args(bare).args(["--features", feature]).args(DENY_WARNINGS));
        }
        let docs = ["doc", "--workspace", "--no-deps", "--all-features"];
        take("docs", program::cargo().args(docs).env("RUSTDOCFLAGS", "-D warnings"));
        if program::output(program::cargo().args(["deny", "--version"]), interrupt).is_ok() {
            take("deny", program::cargo().args(["deny", "--workspace", "--all-features", "check"]));
        } else {
            summary.left_out("deny", "no cargo-deny here; `cargo install cargo-deny --locked` installs it");
        }
        if !interrupt.raised() {
            summary.step("test", || self.test.run(interrupt));
        }
        interrupt.ensure_none()?;
        summary.close()
    }
}

fn passes(command: &mut Command, interrupt: &Interrupt) -> Result<()> {
    let status = program::run(command, interrupt)?;
    ensure!(status.success(), "{status}");
    Ok(())
}
