use std::{
    env,
    future::Future,
    io::{self, BufRead as _, Write as _},
    process::{ExitStatus, Stdio},
};

use anyhow::Context as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Mutex,
};

use crate::Answer;

/// Workers that are processes of their own: this program once more, told to work. One that dies takes its job with
/// it, and the next job gets another one.
#[derive(Debug)]
pub struct Crew {
    arguments: &'static [&'static str],
    idle: Mutex<Vec<Worker>>,
}

#[derive(Debug)]
struct Worker {
    process: Child,
    jobs: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Crew {
    /// Workers who are told that they are by these arguments.
    #[must_use]
    pub fn new(arguments: &'static [&'static str]) -> Self {
        Self { arguments, idle: Mutex::default() }
    }

    /// Has a job done by a worker who has nothing to do, or by a new one.
    pub async fn run(&self, job: &impl Serialize) -> Answer {
        self.ask(job).await.unwrap_or_else(|error| Answer::again(&error))
    }

    async fn ask(&self, job: &impl Serialize) -> anyhow::Result<Answer> {
        let job = serde_json::to_string(job)?;
        let idle = self.idle.lock().await.pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => Worker::start(self.arguments).context("no worker can be started")?,
        };
        if let Ok(Some(answer)) = worker.ask(&job).await {
            self.idle.lock().await.push(worker);
            return Ok(serde_json::from_str(&answer)?);
        }
        let status = worker.end().await?;
        tracing::warn!(%status, job, "a worker died");
        anyhow::bail!("the worker died ({status})")
    }

    /// Lets everybody go home.
    ///
    /// # Errors
    ///
    /// A worker did not leave as it should.
    pub async fn dismiss(&self) -> anyhow::Result<()> {
        for worker in self.idle.lock().await.drain(..) {
            let status = worker.end().await?;
            anyhow::ensure!(status.success(), "a worker left with {status}");
        }
        Ok(())
    }
}

impl Worker {
    fn start(arguments: &[&str]) -> io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if env::var_os("RUST_LOG").is_none() {
            // Where the keys are has been said.
            command.env("RUST_LOG", "warn");
        }
        let mut process = command.spawn()?;
        let (Some(jobs), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { process, jobs, answers: BufReader::new(answers).lines() })
    }

    /// What the worker answers; nothing if it has died.
    async fn ask(&mut self, job: &str) -> io::Result<Option<String>> {
        self.jobs.write_all(format!("{job}\n").as_bytes()).await?;
        self.answers.next_line().await
    }

    async fn end(self) -> io::Result<ExitStatus> {
        let Self { mut process, jobs, .. } = self;
        drop(jobs);
        process.wait().await
    }
}

/// The worker's side: does one job after another, as long as there are any.
///
/// # Errors
///
/// A job cannot be read, or its answer cannot be written.
pub async fn work<J, T, F>(run: impl Fn(J) -> F) -> anyhow::Result<()>
where
    J: DeserializeOwned,
    F: Future<Output = anyhow::Result<T>>,
{
    for job in io::stdin().lock().lines() {
        let answer = Answer::of(run(serde_json::from_str(&job?)?)).await;
        let mut out = io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
    }
    Ok(())
}
