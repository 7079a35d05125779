use std::{process::Command, time::Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::{fleet::Fleet, interrupt::Interrupt, program, server::Running};

/// Kills, stops and cuts off workers that share thousands of keys, restarts the database under them, and looks for
/// every promise that was not kept.
///
/// Each database is a server of its own, which is started for this and may be killed; one that the environment names is
/// not touched. The run fails when a promise was not kept, or when it was long and met nothing to keep one against.
#[derive(Args, Debug)]
pub(crate) struct Chaos {
    /// For how long there are faults and new jobs.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,

    /// Decides which job comes when, and what is done to whom; a new one if there is none.
    #[arg(long)]
    seed: Option<u64>,

    /// Where the keys are; all, one after the other, if none is named.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = DATABASES)]
    db: Vec<String>,

    /// What one in fifty or so deliveries suffers from its worker, to see that it is found.
    #[arg(long, value_name = "HOW", value_parser = ["twice", "deaf", "skips", "lies", "bypasses"])]
    broken: Option<String>,
}

const DATABASES: [&str; 3] = ["sqlite", "postgres", "mysql"];

/// Those of them that are servers.
pub(crate) const SERVERS: [&str; 2] = ["postgres", "mysql"];

/// What a child of our tests begins a line with that is for its parent, and the variable that makes it one.
const MARK: &str = "IDEM_TEST_CHILD";

impl Chaos {
    /// Short, and each time the same: what is part of every test run, on these servers and where none is needed.
    pub(crate) fn short(servers: &[&str]) -> Chaos {
        let db = ["sqlite"].iter().chain(servers).map(|name| (*name).to_owned()).collect();
        Chaos { minutes: 0.2, seed: Some(1), db, broken: None }
    }

    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => getrandom::u64()?,
        };
        let all = DATABASES.map(str::to_owned);
        let mut failed = Vec::new();
        for database in if self.db.is_empty() { &all[..] } else { &self.db } {
            if let Err(error) = self.run_on(database, seed, interrupt) {
                interrupt.ensure_none()?;
                eprintln!("chaos on {database}: {error:#}");
                failed.push(database.as_str());
            }
        }
        ensure!(failed.is_empty(), "chaos failed on {}", failed.join(", "));
        Ok(())
    }

    fn run_on(&self, database: &str, seed: u64, interrupt: &Interrupt) -> Result<()> {
        let begun = Instant::now();
        let mut server = match database {
            "sqlite" => None,
            name => Some(Fleet::own(name, interrupt)?),
        };
        let mut command = self.command(database, seed);
        if let Some(server) = &server {
            command.env(format!("IDEM_TEST_{}_URL", database.to_uppercase()), &server.url);
        }
        let mut again = format!("cargo xtask chaos --minutes {} --seed {seed} --db {database}", self.minutes);
        if let Some(broken) = &self.broken {
            again = format!("{again} --broken {broken}");
        }
        println!("\n── {again} ──");
        let status = program::converse(&mut command, interrupt, |line| {
            let (_, asked) = line.split_once(MARK)?;
            Some(match answer(asked.trim(), server.as_mut()) {
                Ok(()) => "done".to_owned(),
                Err(error) => format!("{error:#}").replace('\n', " "),
            })
        })?;
        ensure!(status.success(), "{status}; again: `{again}`");
        println!("passed in {:.0} s", begun.elapsed().as_secs_f64());
        Ok(())
    }

    /// With the packages and features of `cargo xtask test`, so that nothing is built again.
    fn command(&self, database: &str, seed: u64) -> Command {
        let mut cargo = program::cargo();
        cargo.args(["test", "--quiet", "--workspace", "--all-features", "--test", "chaos", "--"]);
        cargo.args(["run", "--exact", "--ignored", "--nocapture"]);
        cargo.env(MARK, "run").env("IDEM_CHAOS_DB", database).env("IDEM_CHAOS_SEED", seed.to_string());
        cargo.env("IDEM_CHAOS_SECONDS", (self.minutes * 60.0).to_string());
        cargo.env("IDEM_CHAOS_BROKEN", self.broken.as_deref().unwrap_or_default());
        cargo
    }
}

/// Does what a run asks for.
fn answer(asked: &str, server: Option<&mut Running>) -> Result<()> {
    let Some((server, what)) = server.zip(asked.strip_prefix("server ")) else {
        bail!("nobody can do {asked:?}");
    };
    let keeper = server.keeper()?;
    if what == "start" { keeper.start_again() } else { keeper.end(what.parse()?) }
}
