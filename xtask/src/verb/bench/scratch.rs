//! Crates to be built for measuring, in a workspace of their own under `target/`.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Instant, SystemTime},
};

use anyhow::{Context as _, Result};

use super::jobs::Jobs;
use crate::{interrupt::Interrupt, program};

/// The workspace. Cargo is run in it, with its results in folders of their own.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    root: PathBuf,
    interrupt: &'a Interrupt,
}

/// What a crate of jobs needs, with and without the attribute.
const DEPENDENCIES: &str = r#"
anyhow = "1"
serde = { version = "1", features = ["derive"] }
sqlx = { version = "0.9", default-features = false, features = ["runtime-tokio", "sqlite"] }
thiserror = "2"
tokio = { version = "1", features = ["macros", "rt", "time"] }
"#;

impl<'a> Scratch<'a> {
    /// An empty workspace; what an earlier run has built stays, for the dependencies.
    pub(crate) fn new(name: &str, interrupt: &'a Interrupt) -> Result<Self> {
        let root = program::workspace().join("target/bench-build").join(name);
        let _ = fs::remove_dir_all(root.join("crates"));
        fs::create_dir_all(&root)?;
        let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n\n\
                        [profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.release]\nstrip = true\n";
        fs::write(root.join("Cargo.toml"), manifest)?;
        // The versions that this repository is tested with.
        fs::copy(program::workspace().join("Cargo.lock"), root.join("Cargo.lock"))?;
        Ok(Self { root: root.canonicalize()?, interrupt })
    }

    /// Adds a crate of jobs; gives its name.
    pub(crate) fn jobs(&self, jobs: Jobs) -> Result<String> {
        let kind = if jobs.annotated { "annotated" } else { "plain" };
        let (name, target) = if jobs.called {
            (format!("{kind}-{}-program", jobs.count), "main.rs")
        } else {
            (format!("{kind}-{}", jobs.count), "lib.rs")
        };
        let runtime = program::workspace().join("idem-runtime").canonicalize()?;
        let dependencies = format!("{DEPENDENCIES}idem-runtime = {{ path = \"{}\" }}\n", runtime.display());
        let modules = jobs.modules();
        let root = jobs.root(&modules);
        self.add(&name, &dependencies, target, &root)?;
        for (module, text) in modules {
            fs::write(self.folder(&name).join(format!("src/{module}.rs")), text)?;
        }
        Ok(name)
    }

    /// Adds a crate.
    pub(crate) fn add(&self, name: &str, dependencies: &str, target: &str, text: &str) -> Result<()> {
        let folder = self.folder(name);
        fs::create_dir_all(folder.join("src"))?;
        let manifest = format!(
            "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}"
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::write(folder.join("src").join(target), text)?;
        Ok(())
    }

    /// Fetches what the crates need, from the network only where it is not there yet.
    pub(crate) fn fetch(&self) -> Result<()> {
        let offline = program::output(self.cargo().args(["fetch", "--offline"]), self.interrupt);
        if offline.is_err() {
            program::output(self.cargo().arg("fetch"), self.interrupt)
                .context("the crates to measure cannot be fetched")?;
        }
        Ok(())
    }

    /// Seconds that a command of cargo's takes for one crate whose own files have changed.
    pub(crate) fn time(&self, cargo: &[&str], name: &str, incremental: bool) -> Result<f64> {
        for file in ["src/lib.rs", "src/main.rs"] {
            if let Ok(file) = fs::File::open(self.folder(name).join(file)) {
                file.set_modified(SystemTime::now())?;
            }
        }
        self.time_as_it_is(cargo, name, incremental)
    }

    /// Seconds that a command of cargo's takes for one crate with all that it depends on.
    pub(crate) fn time_from_nothing(&self, cargo: &[&str], name: &str) -> Result<f64> {
        let _ = fs::remove_dir_all(self.target());
        self.time_as_it_is(cargo, name, false)
    }

    fn time_as_it_is(&self, cargo: &[&str], name: &str, incremental: bool) -> Result<f64> {
        let incremental = if incremental { "1" } else { "0" };
        let mut command = self.cargo();
        command.args(cargo).args(["--quiet", "--offline", "--package", name]);
        command.arg("--target-dir").arg(self.target()).env("CARGO_INCREMENTAL", incremental);
        let begun = Instant::now();
        program::output(&mut command, self.interrupt)?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// How many crates a crate depends on, directly or not.
    pub(crate) fn dependencies(&self, name: &str) -> Result<usize> {
        let tree =
            ["tree", "--offline", "--prefix", "none", "--no-dedupe", "--format", "{p}", "--package", name];
        let tree = program::output(self.cargo().args(tree), self.interrupt)?;
        let mut crates: Vec<&str> = tree.lines().skip(1).filter(|line| !line.is_empty()).collect();
        crates.sort_unstable();
        crates.dedup();
        Ok(crates.len())
    }

    /// The size of a program, built for release and without symbols, in bytes.
    pub(crate) fn program_size(&self, name: &str) -> Result<u64> {
        self.time_as_it_is(&["build", "--release"], name, false)?;
        Ok(fs::metadata(self.target().join("release").join(name))?.len())
    }

    fn cargo(&self) -> Command {
        let mut cargo = program::cargo();
        cargo.current_dir(&self.root);
        cargo
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.join("crates").join(name)
    }

    fn target(&self) -> PathBuf {
        self.root.join("target")
    }
}
