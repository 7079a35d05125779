use std::{
    fs,
    io::Read as _,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    Ending, Keeper, Running, Server,
    account::Account,
    secret::{ATTEMPTS, free_port, password},
};
use crate::{fleet::Fleet, interrupt::Interrupt, program};

pub(crate) const SERVER: Server = Server {
    name: "mysql",
    variable: "MYSQL_URL",
    suite: "conformance::mysql::",
    measured: true,
    install: "install MariaDB 10.6 or MySQL 8.0, or later (Debian: `apt install mariadb-server`, macOS: `brew install \
              mariadb`)",
    start,
};

/// How long a server may take until it greets.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where distributions keep a server's programs, besides the `PATH`.
const OFF_THE_PATH: [&str; 6] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/mysql/bin",
    "/opt/homebrew/opt/mariadb/bin",
    "/opt/homebrew/opt/mysql/bin",
];

/// The programs of either kind.
#[derive(Debug)]
enum Programs {
    MariaDb { install: PathBuf, server: PathBuf },
    MySql { server: PathBuf },
}

/// A server of its own: data, socket and log in one temporary folder, a random password, a free port on loopback. Its
/// durability is as it comes: each commit is written through.
#[derive(Debug)]
struct Instance {
    programs: Programs,
    account: Account,
    folder: TempDir,
    child: Option<Child>,
    port: u16,
}

fn start(_: &Fleet, interrupt: &Interrupt) -> Result<Running> {
    let programs = Programs::find().context("found no programs of MariaDB or MySQL")?;
    let account = Account::unprivileged(&["mysql", "_mysql", "nobody"])?;
    let folder = TempDir::with_prefix("idem-mysql-")?;
    account.own(folder.path())?;
    let mut instance = Instance { programs, account, folder, child: None, port: 0 };
    let password = password()?;
    instance.initialize(&password, interrupt)?;
    let port = instance.start(interrupt)?;
    Ok(Running::kept_by(instance, format!("mysql://root:{password}@127.0.0.1:{port}/mysql")))
}

impl Instance {
    fn initialize(&self, password: &str, interrupt: &Interrupt) -> Result<()> {
        let mut install = match &self.programs {
            Programs::MariaDb { install, .. } => {
                let mut command = self.command(install);
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command
            }
            Programs::MySql { server } => {
                let mut command = self.command(server);
                command.args(["--no-defaults", "--initialize-insecure"]);
                command
            }
        };
        install.arg(format!("--datadir={}", self.path("data").display()));
        program::output(&mut install, interrupt).context("there is no data folder to start with")?;

        let identified = match self.programs {
            Programs::MariaDb { .. } => "IDENTIFIED BY",
            Programs::MySql { .. } => "IDENTIFIED WITH mysql_native_password BY",
        };
        let accounts = ["localhost", "127.0.0.1"].map(|host| {
            format!(
                "CREATE USER IF NOT EXISTS 'root'@'{host}';\n\
                 GRANT ALL PRIVILEGES ON *.* TO 'root'@'{host}' WITH GRANT OPTION;\n\
                 ALTER USER 'root'@'{host}' {identified} '{password}';\n"
            )
        });
        let file = self.path("accounts.sql");
        fs::write(&file, accounts.concat())?;
        self.account.own(&file)
    }

    fn start(&mut self, interrupt: &Interrupt) -> Result<u16> {
        let mut attempt = 1;
        loop {
            self.port = free_port()?;
            let started = self.start_on_port(interrupt);
            match started {
                Ok(()) => return Ok(self.port),
                Err(_) if attempt < ATTEMPTS && !interrupt.raised() => attempt += 1,
                Err(error) => {
                    let log = fs::read_to_string(self.path("log")).unwrap_or_default();
                    return Err(error.context(format!("the server does not start: {}", log.trim_end())));
                }
            }
        }
    }

    fn start_on_port(&mut self, interrupt: &Interrupt) -> Result<()> {
        let (Programs::MariaDb { server, .. } | Programs::MySql { server }) = &self.programs;
        let mut command = self.command(server);
        command.arg("--no-defaults");
        for (option, file) in [
            ("datadir", "data"),
            ("socket", "socket"),
            ("pid-file", "pid"),
            ("log-error", "log"),
            ("init-file", "accounts.sql"),
        ] {
            command.arg(format!("--{option}={}", self.path(file).display()));
        }
        let port = self.port;
        command.arg(format!("--port={port}"));
        command.args(["--bind-address=127.0.0.1", "--max-connections=500"]);
        // MySQL: the one plug-in that needs no TLS, and no second protocol on a port of its own.
        command.args(["--loose-mysql-native-password=ON", "--loose-mysqlx=OFF"]);
        let child = self.child.insert(program::start(&mut command)?);
        let patience = Instant::now() + PATIENCE;
        while !greets(port) {
            if let Some(status) = child.try_wait()? {
                bail!("it ended: {status}");
            }
            interrupt.ensure_none()?;
            if Instant::now() > patience {
                program::kill(child)?;
                bail!("it does not answer");
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = self.account.command(program);
        command.current_dir(self.folder.path());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Whether a server sends its greeting there. It does so when the accounts are made.
fn greets(port: u16) -> bool {
    let greeting = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.read_exact(&mut [0; 5])
    });
    greeting.is_ok()
}

impl Keeper for Instance {
    fn end(&mut self, ending: Ending) -> Result<()> {
        let child = self.child.as_mut().context("it does not run")?;
        match ending {
            Ending::Graceful => {
                kill_process(Pid::from_child(child), Signal::TERM)?;
                let patience = Instant::now() + PATIENCE;
                while child.try_wait()?.is_none() {
                    ensure!(Instant::now() < patience, "it does not end");
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(())
            }
            Ending::Immediate => bail!("this server ends gracefully or not at all"),
            Ending::Killed => program::kill(child),
        }
    }

    /// Not to be interrupted by halves: it is asked to end by being dropped.
    fn start_again(&mut self) -> Result<()> {
        self.start_on_port(&Interrupt::default())
    }
}

impl Drop for Instance {
    /// The data is thrown away, so nothing needs to be written back first.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && let Err(error) = program::kill(child)
        {
            eprintln!("the server may still be running in {}: {error:#}", self.folder.path().display());
        }
    }
}

impl Programs {
    /// MariaDB's, or else MySQL's: what is called `mysqld` beside MariaDB's own programs is the same server.
    fn find() -> Option<Programs> {
        match (program::find("mariadb-install-db", &OFF_THE_PATH), program::find("mariadbd", &OFF_THE_PATH)) {
            (Some(install), Some(server)) => Some(Programs::MariaDb { install, server }),
            _ => Some(Programs::MySql { server: program::find("mysqld", &OFF_THE_PATH)? }),
        }
    }
}
