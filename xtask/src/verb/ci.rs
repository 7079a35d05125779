use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use super::{docs, fuzz, fuzz::Fuzz, test::Test};
use crate::{interrupt::Interrupt, program, summary::Summary};

/// Everything a change must pass, the quick steps first.
#[derive(Args, Debug)]
pub(crate) struct Ci {
    #[command(flatten)]
    test: Test,
}

/// The features of the runtime, each of which must build alone.
const FEATURES: [&str; 7] = ["sqlite", "postgres", "mysql", "uuid", "chrono", "time", "jiff"];

/// Long enough to see that it works; whoever looks for faults takes longer.
const FUZZ_SECONDS: u32 = 10;

const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

impl Ci {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        let mut run = Run { summary: Summary::default(), interrupt };
        run.take("fmt", &["fmt", "--all", "--check"])?;
        run.clippy("clippy", &["--workspace", "--all-targets", "--all-features"])?;
        let bare = ["--package", "idem-runtime", "--no-default-features"];
        run.clippy("no feature", &bare)?;
        for feature in FEATURES {
            run.clippy(&format!("feature {feature}"), &[&bare[..], &["--features", feature]].concat())?;
        }
        // Constants that a debug build never looks at are evaluated here.
        run.take("optimized", &["build", "--release", "--package", "idem-runtime", "--all-features"])?;
        let docs = ["doc", "--workspace", "--no-deps", "--all-features"];
        run.take_command("docs", program::cargo().args(docs).env("RUSTDOCFLAGS", "-D warnings"))?;
        run.summary.step("compile errors", docs::check);
        run.deny()?;
        run.fuzz()?;
        run.summary.step("test", || self.test.run(interrupt));
        interrupt.ensure_none()?;
        run.summary.close()
    }
}

struct Run<'a> {
    summary: Summary,
    interrupt: &'a Interrupt,
}

impl Run<'_> {
    fn clippy(&mut self, step: &str, of: &[&str]) -> Result<()> {
        self.take(step, &[&["clippy"], of, &DENY_WARNINGS].concat())
    }

    fn deny(&mut self) -> Result<()> {
        if !self.can(&["deny", "--version"]) {
            let remedy = "no cargo-deny here; `cargo install cargo-deny --locked` installs it";
            self.summary.left_out("deny", remedy);
            return Ok(());
        }
        self.take("deny", &["deny", "--workspace", "check", "licenses", "bans", "sources"])?;
        if self.can(&["deny", "fetch", "db"]) {
            self.take("advisories", &["deny", "--workspace", "check", "advisories"])
        } else {
            self.summary.left_out("advisories", "the advisory database cannot be fetched from here");
            Ok(())
        }
    }

    fn fuzz(&mut self) -> Result<()> {
        match fuzz::missing(self.interrupt) {
            Some(missing) => self.summary.left_out("fuzz", missing),
            None => self.summary.step("fuzz", || Fuzz::of_seconds(FUZZ_SECONDS).run(self.interrupt)),
        }
        self.interrupt.ensure_none()
    }

    fn can(&self, cargo: &[&str]) -> bool {
        program::output(program::cargo().args(cargo), self.interrupt).is_ok()
    }

    fn take(&mut self, step: &str, cargo: &[&str]) -> Result<()> {
        self.take_command(step, program::cargo().args(cargo))
    }

    /// An error only when interrupted: a step that fails is in the summary, and the next one is taken all the same.
    fn take_command(&mut self, step: &str, command: &mut Command) -> Result<()> {
        self.summary.step(step, || {
            let status = program::run(command, self.interrupt)?;
            ensure!(status.success(), "{status}");
            Ok(())
        });
        self.interrupt.ensure_none()
    }
}
