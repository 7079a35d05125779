use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use url::Url;

use super::{ATTEMPTS, Keeper, Running, Server, account::Account, free_port};
use crate::{
    fleet::Fleet,
    interrupt::Interrupt,
    program::{self, Background},
};

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

/// Where distributions keep it off a user's `PATH`.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/opt/homebrew/sbin"];

/// A pooler in transaction mode before the run's own Postgres, whatever the database: two server connections for
/// each, and any number of clients. All else is as it comes.
#[derive(Debug)]
struct Pooler {
    _process: Background,
    _folder: TempDir,
}

impl Keeper for Pooler {}

fn start(fleet: &Fleet, interrupt: &Interrupt) -> Result<Running> {
    let postgres =
        fleet.url("postgres").context("it stands before a PostgreSQL server, and there is none")?;
    let mut url = Url::parse(postgres).context("the URL of PostgreSQL")?;
    let program = program().context("found no `pgbouncer`")?;
    let account = Account::unprivileged(&["postgres", "_postgres", "nobody"])?;
    let folder = TempDir::with_prefix("idem-pgbouncer-")?;
    account.own(folder.path())?;
    let mut attempt = 1;
    let (port, process) = loop {
        let port = free_port()?;
        match listening(&program, account, folder.path(), &url, port, interrupt) {
            Ok(process) => break (port, process),
            Err(_) if attempt < ATTEMPTS && !interrupt.raised() => attempt += 1,
            Err(error) => return Err(error),
        }
    };
    // Neither fails on a URL with a host.
    let _ = (url.set_host(Some("127.0.0.1")), url.set_port(Some(port)));
    Ok(Running::kept_by(Pooler { _process: process, _folder: folder }, url.into()))
}

/// One that listens on the port.
fn listening(
    program: &Path,
    account: Account,
    folder: &Path,
    postgres: &Url,
    port: u16,
    interrupt: &Interrupt,
) -> Result<Background> {
    let file = |name: &str, text: &str| -> Result<PathBuf> {
        let path = folder.join(name);
        fs::write(&path, text)?;
        account.own(&path)?;
        Ok(path)
    };
    let log = file("log", "")?;
    let users = file("users", &users(postgres))?;
    let settings = file("pgbouncer.ini", &settings(postgres, port, &users, &log)?)?;
    let mut command = account.command(program);
    command.arg("--quiet").arg(settings).current_dir(folder);
    let mut process = program::start(&mut command)?;
    let patience = Instant::now() + PATIENCE;
    loop {
        let logged = fs::read_to_string(&log)?;
        if logged.contains(&format!("listening on 127.0.0.1:{port}")) {
            return Ok(process);
        }
        if process.has_ended()? || Instant::now() > patience {
            bail!("pgbouncer does not start: {}", logged.trim_end());
        }
        interrupt.ensure_none()?;
        thread::sleep(Duration::from_millis(10));
    }
}

fn users(postgres: &Url) -> String {
    let quoted = |text: &str| format!("\"{}\"", decoded(text).replace('"', "\"\""));
    format!("{} {}\n", quoted(postgres.username()), quoted(postgres.password().unwrap_or_default()))
}

fn settings(postgres: &Url, port: u16, users: &Path, log: &Path) -> Result<String> {
    let host = postgres.host_str().context("no host in the URL of PostgreSQL")?.trim_matches(['[', ']']);
    let mut settings = String::new();
    writeln!(settings, "[databases]")?;
    writeln!(settings, "* = host={host} port={}", postgres.port().unwrap_or(5432))?;
    writeln!(settings, "[pgbouncer]")?;
    writeln!(settings, "listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =")?;
    // Sent over loopback only; a hash would slow each connection of a debug build down.
    writeln!(settings, "auth_type = plain\nauth_file = {}", users.display())?;
    writeln!(settings, "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 1000")?;
    writeln!(settings, "logfile = {}", log.display())?;
    Ok(settings)
}

/// A part of a URL as the one who wrote it meant it.
fn decoded(text: &str) -> String {
    let pairs = format!("_={}", text.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(pairs.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

fn program() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let folders = on_path.into_iter().flatten().chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_of_the_url_are_written_as_they_are_meant() {
        let url = Url::parse("postgres://a%22b:p%2B+q%25&r@db.internal/app").expect("a URL");
        assert_eq!(users(&url), "\"a\"\"b\" \"p++q%&r\"\n");
    }

    #[test]
    fn every_database_of_the_server_is_reached() {
        let url = Url::parse("postgres://app@db.internal:6000/app").expect("a URL");
        let settings = settings(&url, 7000, Path::new("/users"), Path::new("/log")).expect("settings");
        assert!(settings.contains("* = host=db.internal port=6000\n"), "{settings}");
        assert!(settings.contains("listen_port = 7000\n"), "{settings}");
    }
}
