use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{Running, Server};
use crate::{fleet::Fleet, interrupt::Interrupt, program};

pub(crate) const SERVER: Server = Server {
    name: "python",
    variable: "PYTHON",
    suite: "python::",
    measured: false,
    install: "install Python 3.10 or later with its `venv` (Debian: `apt install python3-venv`)",
    start,
};

/// What is on the `PATH`, or else what the system came with.
const INTERPRETERS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// The interpreter of an environment that holds what the foreign workers need. It is made once for each list of that.
fn start(_: &Fleet, interrupt: &Interrupt) -> Result<Running> {
    let needs = program::workspace().join("tests/python/requirements.txt");
    let needed = fs::read_to_string(&needs).with_context(|| format!("cannot read {}", needs.display()))?;
    let home = target()?.join("python");
    let (interpreter, installed) = (home.join("bin/python"), home.join("installed.txt"));
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == needed) && interpreter.exists() {
        return Ok(running(&interpreter));
    }
    make(&home, interrupt)?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&needs);
    program::output(&mut pip, interrupt).context("cannot install what the foreign workers need")?;
    fs::write(&installed, needed)?;
    Ok(running(&interpreter))
}

fn running(interpreter: &Path) -> Running {
    Running::elsewhere(interpreter.display().to_string())
}

/// Makes an environment, in place of one that was left half made.
fn make(home: &Path, interrupt: &Interrupt) -> Result<()> {
    let mut refused = None;
    for interpreter in INTERPRETERS {
        let mut command = Command::new(interpreter);
        match program::output(command.args(["-m", "venv", "--clear"]).arg(home), interrupt) {
            Ok(_) => return Ok(()),
            Err(error) => refused = refused.or(Some(error)),
        }
        interrupt.ensure_none()?;
    }
    refused.map_or(Ok(()), |error| Err(error.context("found no Python that makes an environment")))
}

/// The folder this program was built into.
fn target() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.ancestors().nth(2).context("no folder for what is built")?;
    Ok(folder.to_owned())
}
