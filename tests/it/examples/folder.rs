use std::{
    collections::HashMap,
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use idem_tests::{Backend, Database};
use serde_json::Value;
use tempfile::TempDir;

/// How long an example may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// A folder to run examples in, and the database they are told of.
#[derive(Debug)]
pub(super) struct Folder {
    folder: TempDir,
    database: Option<Database>,
}

/// An example that has been started.
#[derive(Debug)]
pub(super) struct Started {
    process: std::process::Child,
    output: PathBuf,
    errors: PathBuf,
}

/// An example that has ended.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) status: ExitStatus,
    pub(super) output: String,
    pub(super) errors: String,
}

impl Folder {
    /// On SQLite nothing is told: the examples find their own place, in the folder.
    pub(super) fn on(backend: Backend) -> Folder {
        let database = (backend != Backend::Sqlite).then(|| backend.fresh());
        Folder { folder: TempDir::with_prefix("idem-example-").expect("a temporary folder"), database }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).expect("a folder to write to");
    }

    pub(super) fn run(&self, example: &str, arguments: &[&str]) -> Run {
        self.start(example, arguments).end()
    }

    pub(super) fn run_with(&self, url: &str, example: &str, arguments: &[&str]) -> Run {
        self.spawn(Some(url), Command::new(program(example)).args(arguments)).end()
    }

    /// Runs an example as somebody at a terminal sees it. `None` where `script`, which makes the terminal, is missing.
    pub(super) fn run_on_terminal(&self, example: &str) -> Option<Run> {
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command"]).arg(program(example)).arg("/dev/null");
        let present = Command::new("script").arg("--version").output().is_ok();
        present.then(|| self.spawn(None, &mut script).end())
    }

    pub(super) fn start(&self, example: &str, arguments: &[&str]) -> Started {
        let url = self.database.as_ref().map(Database::url);
        self.spawn(url, Command::new(program(example)).args(arguments))
    }

    fn spawn(&self, url: Option<&str>, command: &mut Command) -> Started {
        let unique = |kind| {
            let kept = tempfile::Builder::new().prefix(kind).tempfile_in(self.folder.path());
            kept.and_then(|file| Ok(file.keep()?)).expect("a file in the folder")
        };
        let ((into_output, output), (into_errors, errors)): ((File, _), (File, _)) =
            (unique("out"), unique("err"));
        command.current_dir(self.folder.path()).stdout(into_output).stderr(into_errors);
        command.env_remove("IDEM_DATABASE_URL").env_remove("RUST_LOG");
        command.envs(url.map(|url| ("IDEM_DATABASE_URL", url)));
        Started { process: command.spawn().expect("a program"), output, errors }
    }
}

impl Started {
    /// Tells it to leave, as a deploy does (SIGTERM).
    pub(super) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a child of ours");
    }

    pub(super) fn end(mut self) -> Run {
        let patience = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("a child of ours") {
                break status;
            }
            if Instant::now() > patience {
                self.process.kill().expect("a child of ours");
            }
            thread::sleep(Duration::from_millis(10));
        };
        let read = |file: &Path| fs::read_to_string(file).expect("what it printed");
        Run { status, output: read(&self.output), errors: read(&self.errors) }
    }
}

impl Run {
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// A number of the closing line.
    pub(super) fn count(&self, name: &str) -> u64 {
        let line: Value = serde_json::from_str(&self.output).unwrap_or_else(|_| panic!("no JSON\n{self}"));
        line[name].as_u64().unwrap_or_else(|| panic!("no {name}\n{self}"))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}", self.status, self.output, self.errors)
    }
}

/// The compiled example.
fn program(example: &str) -> &'static Path {
    static PROGRAMS: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(build).get(example).unwrap_or_else(|| panic!("no example {example}"))
}

/// Builds the examples with the packages and features that `cargo xtask test` builds with, so that nothing is built
/// again there.
fn build() -> HashMap<String, PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--workspace", "--all-features", "--examples", "--message-format=json"]);
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8(built.stdout).expect("JSON of cargo");
    let programs = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, message["executable"].as_str()?.into()))
    });
    programs.collect()
}
