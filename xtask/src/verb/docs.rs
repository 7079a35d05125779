use std::fs;

use anyhow::{Result, ensure};
use clap::Args;

use crate::{document, program};

/// Writes the examples and messages of `docs/compile-errors.md` anew, from the cases of `tests/ui`.
#[derive(Args, Debug)]
pub(crate) struct Docs {
    /// Writes nothing; it is an error if there is anything to write.
    #[arg(long)]
    check: bool,
}

impl Docs {
    pub(crate) fn run(&self) -> Result<()> {
        if self.check {
            return check();
        }
        let file = program::workspace().join(document::PATH);
        let text = fs::read_to_string(&file)?;
        fs::write(&file, document::refreshed(&text, &program::workspace())?)?;
        Ok(())
    }
}

pub(crate) fn check() -> Result<()> {
    let text = fs::read_to_string(program::workspace().join(document::PATH))?;
    let current = text == document::refreshed(&text, &program::workspace())?;
    ensure!(current, "{} is out of date: `cargo xtask docs` writes it", document::PATH);
    Ok(())
}
