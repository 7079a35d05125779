use std::{
    env,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    Ending, Keeper, Running, Server,
    account::Account,
    secret::{ATTEMPTS, free_port, password},
};
use crate::{fleet::Fleet, interrupt::Interrupt, program};

pub(crate) const SERVER: Server = Server {
    name: "postgres",
    variable: "POSTGRES_URL",
    suite: "conformance::postgres::",
    measured: true,
    install: "install PostgreSQL 13 or later (Debian: `apt install postgresql`, macOS: `brew install postgresql`)",
    start,
};

/// A cluster of its own: data, socket and log in one temporary folder, a random password, a free port on loopback.
/// Its durability is as it comes: `fsync` and `synchronous_commit` are on.
#[derive(Debug)]
struct Cluster {
    programs: PathBuf,
    account: Account,
    folder: TempDir,
    port: u16,
}

/// How long the remains of a server that was killed may be in the way of the next.
const PATIENCE: Duration = Duration::from_mins(1);

fn start(_: &Fleet, interrupt: &Interrupt) -> Result<Running> {
    let programs = programs().context("found no PostgreSQL programs")?;
    let account = Account::unprivileged(&["postgres", "_postgres", "nobody"])?;
    let folder = TempDir::with_prefix("idem-postgres-")?;
    account.own(folder.path())?;
    let mut cluster = Cluster { programs, account, folder, port: 0 };
    let password = password()?;
    cluster.initialize(&password, interrupt)?;
    let port = cluster.start()?;
    Ok(Running::kept_by(cluster, format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres")))
}

impl Cluster {
    fn initialize(&self, password: &str, interrupt: &Interrupt) -> Result<()> {
        let secret = self.path("password");
        fs::write(&secret, password)?;
        self.account.own(&secret)?;
        let mut initdb = self.command("initdb");
        initdb.arg("--pgdata").arg(self.data()).arg("--pwfile").arg(&secret);
        initdb.args(["--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]);
        // Sent over loopback and the private socket only; a hash would slow each connection of a debug build down.
        initdb.arg("--auth=password");
        program::output(&mut initdb, interrupt).context("PostgreSQL made no cluster")?;

        let socket_folder = self.folder.path().display().to_string().replace('\'', "''");
        let mut settings = OpenOptions::new().append(true).open(self.data().join("postgresql.conf"))?;
        writeln!(settings, "listen_addresses = '127.0.0.1'")?;
        writeln!(settings, "unix_socket_directories = '{socket_folder}'")?;
        writeln!(settings, "max_connections = 300")?;
        Ok(())
    }

    fn start(&mut self) -> Result<u16> {
        let mut attempt = 1;
        loop {
            self.port = free_port()?;
            match self.start_on_port() {
                Ok(()) => return Ok(self.port),
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => {
                    let log = fs::read_to_string(self.path("log")).unwrap_or_default();
                    return Err(error.context(format!("PostgreSQL does not start: {}", log.trim_end())));
                }
            }
        }
    }

    /// Not to be interrupted: a server that is half started cannot be told to stop.
    fn start_on_port(&self) -> Result<()> {
        let mut pg_ctl = self.command("pg_ctl");
        pg_ctl.args(["start", "--silent", "--wait", "--timeout=60", "--pgdata"]).arg(self.data());
        pg_ctl.arg("--log").arg(self.path("log")).arg(format!("--options=-p {}", self.port));
        program::output(&mut pg_ctl, &Interrupt::default()).map(drop)
    }

    fn stop(&self, mode: &str) -> Result<()> {
        let mut pg_ctl = self.command("pg_ctl");
        let mode = format!("--mode={mode}");
        pg_ctl.args(["stop", "--silent", &mode, "--wait", "--timeout=30", "--pgdata"]).arg(self.data());
        // An interrupt is no reason to leave it running.
        program::output(&mut pg_ctl, &Interrupt::default()).map(drop)
    }

    /// Kills the server and every process that serves a connection of it.
    fn kill(&self) -> Result<()> {
        let file = fs::read_to_string(self.data().join("postmaster.pid"))?;
        let pid = file.lines().next().and_then(process_id).context("the server's file names no process")?;
        // Where the system does not tell, they end by themselves as soon as they notice.
        let raw = pid.as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{raw}/task/{raw}/children")).unwrap_or_default();
        kill_process(pid, Signal::KILL)?;
        for child in children.split_whitespace().filter_map(process_id) {
            // It may have ended with its parent.
            let _ = kill_process(child, Signal::KILL);
        }
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.account.command(&self.programs.join(program));
        command.current_dir(self.folder.path());
        command
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Keeper for Cluster {
    fn end(&mut self, ending: Ending) -> Result<()> {
        match ending {
            Ending::Graceful => self.stop("fast"),
            Ending::Immediate => self.stop("immediate"),
            Ending::Killed => self.kill(),
        }
    }

    fn start_again(&mut self) -> Result<()> {
        let patience = Instant::now() + PATIENCE;
        loop {
            match self.start_on_port() {
                // What was killed may still hold its memory.
                Err(_) if Instant::now() < patience => thread::sleep(Duration::from_millis(50)),
                started => return started,
            }
        }
    }
}

impl Drop for Cluster {
    /// The data is thrown away, so nothing needs to be written back first.
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists()
            && let Err(error) = self.stop("immediate")
        {
            eprintln!("PostgreSQL may still be running in {}: {error:#}", self.folder.path().display());
        }
    }
}

fn process_id(text: &str) -> Option<Pid> {
    text.trim().parse().ok().and_then(Pid::from_raw)
}

/// The folder with the server's programs: on the `PATH`, or where distributions keep them off it, the newest first.
fn programs() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
    on_path
        .into_iter()
        .flatten()
        .chain(told_by_pg_config())
        .chain(versioned())
        .find(|folder| is_complete(folder))
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres"].iter().all(|program| folder.join(program).is_file())
}

fn told_by_pg_config() -> Option<PathBuf> {
    let told = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(told.stdout).ok()?.trim_end()))
}

/// `/usr/lib/postgresql/17/bin` (Debian), `/usr/pgsql-17/bin` (Red Hat), `/opt/homebrew/opt/postgresql@17/bin`.
fn versioned() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, prefix) in [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql"),
        ("/usr/local/opt", "postgresql"),
    ] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Some(version) = entry.file_name().to_str().and_then(|name| name.strip_prefix(prefix)) {
                found.push((version_number(version), entry.path().join("bin")));
            }
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, programs)| programs).collect()
}

fn version_number(version: &str) -> u32 {
    version.trim_start_matches('@').split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default()
}
