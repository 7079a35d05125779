use std::{
    fs,
    path::PathBuf,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use url::Url;

use super::{
    Keeper, Running, Server,
    account::Account,
    secret::{ATTEMPTS, free_port},
};
use crate::{fleet::Fleet, interrupt::Interrupt, program};

pub(crate) const SERVER: Server = Server {
    name: "pgbouncer",
    variable: "PGBOUNCER_URL",
    suite: "conformance::pgbouncer::",
    measured: false,
    install: "install pgbouncer (Debian: `apt install pgbouncer`, macOS: `brew install pgbouncer`)",
    start,
};

/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where distributions keep it, besides the `PATH`.
const OFF_THE_PATH: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/opt/homebrew/sbin"];

/// A pooler in transaction mode before the run's own Postgres, whatever the database: two server connections for
/// each, and many clients. All else is as it comes.
#[derive(Debug)]
struct Pooler {
    program: PathBuf,
    account: Account,
    folder: TempDir,
    child: Option<Child>,
}

fn start(fleet: &Fleet, interrupt: &Interrupt) -> Result<Running> {
    let postgres = fleet.url("postgres").context("there is no PostgreSQL to stand before")?;
    let mut url = Url::parse(postgres).context("the URL of PostgreSQL")?;
    let program = program::find("pgbouncer", &OFF_THE_PATH).context("found no `pgbouncer`")?;
    let account = Account::unprivileged(&["postgres", "_postgres", "nobody"])?;
    let folder = TempDir::with_prefix("idem-pgbouncer-")?;
    account.own(folder.path())?;
    let mut pooler = Pooler { program, account, folder, child: None };
    let port = pooler.start(&url, interrupt)?;
    // Neither fails on a URL with a host.
    let _ = (url.set_host(Some("127.0.0.1")), url.set_port(Some(port)));
    Ok(Running::kept_by(pooler, url.into()))
}

impl Pooler {
    fn start(&mut self, postgres: &Url, interrupt: &Interrupt) -> Result<u16> {
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            match self.start_on(port, postgres, interrupt) {
                Ok(()) => return Ok(port),
                Err(_) if attempt < ATTEMPTS && !interrupt.raised() => attempt += 1,
                Err(error) => {
                    let log = fs::read_to_string(self.path("log")).unwrap_or_default();
                    return Err(error.context(format!("pgbouncer does not start: {}", log.trim_end())));
                }
            }
        }
    }

    fn start_on(&mut self, port: u16, postgres: &Url, interrupt: &Interrupt) -> Result<()> {
        self.write("log", "")?;
        self.write("users", &users(postgres))?;
        self.write("settings", &self.settings(port, postgres)?)?;
        let mut command = self.account.command(&self.program);
        command.arg("--quiet").arg(self.path("settings")).current_dir(self.folder.path());
        let log = self.path("log");
        let child = self.child.insert(program::start(&mut command)?);
        let patience = Instant::now() + PATIENCE;
        while !fs::read_to_string(&log)?.contains(&format!("listening on 127.0.0.1:{port}")) {
            if let Some(status) = child.try_wait()? {
                bail!("it ended: {status}");
            }
            interrupt.ensure_none()?;
            if Instant::now() > patience {
                program::kill(child)?;
                bail!("it does not listen");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn settings(&self, port: u16, postgres: &Url) -> Result<String> {
        let host = postgres.host_str().context("no host in the URL of PostgreSQL")?.trim_matches(['[', ']']);
        let behind = postgres.port().unwrap_or(5432);
        let (users, log) = (self.path("users"), self.path("log"));
        // A password is sent over loopback only; a hash would slow each connection of a debug build down.
        Ok(format!(
            "[databases]\n\
             * = host={host} port={behind}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = plain\n\
             auth_file = {}\n\
             logfile = {}\n\
             pool_mode = transaction\n\
             default_pool_size = 2\n\
             max_client_conn = 1000\n",
            users.display(),
            log.display()
        ))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, text)?;
        self.account.own(&path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Keeper for Pooler {}

impl Drop for Pooler {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && let Err(error) = program::kill(child)
        {
            eprintln!("pgbouncer may still be running in {}: {error:#}", self.folder.path().display());
        }
    }
}

fn users(postgres: &Url) -> String {
    let quoted = |text: &str| format!("\"{}\"", decoded(text).replace('"', "\"\""));
    format!("{} {}\n", quoted(postgres.username()), quoted(postgres.password().unwrap_or_default()))
}

/// A part of a URL as the one who wrote it meant it.
fn decoded(text: &str) -> String {
    let pairs = format!("_={}", text.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(pairs.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_of_the_url_are_written_as_they_are_meant() {
        let url = Url::parse("postgres://a%22b:p%2B+q%25&r@db.internal/app").expect("a URL");
        assert_eq!(users(&url), "\"a\"\"b\" \"p++q%&r\"\n");
    }
}
