//! Other programs, each run in a process group of its own: a ctrl-c reaches us alone, and we end whole groups.

use std::{
    env,
    io::{BufRead as _, BufReader, Read, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::interrupt::Interrupt;

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// `cargo` in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}

/// The workspace's root.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where one stands: on the `PATH`, or in one of the folders where distributions keep it off that.
pub(crate) fn find(name: &str, off_the_path: &[&str]) -> Option<PathBuf> {
    let on_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let folders = on_path.into_iter().flatten().chain(off_the_path.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Runs to the end, in sight of the user.
pub(crate) fn run(command: &mut Command, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut child = spawn(command)?;
    wait(&mut child, interrupt)
}

/// Runs to the end and gives what it printed; an error, with what it complained about, if it failed.
pub(crate) fn output(command: &mut Command, interrupt: &Interrupt) -> Result<String> {
    let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = read_aside(child.stdout.take());
    let stderr = read_aside(child.stderr.take());
    let status = wait(&mut child, interrupt)?;
    let [stdout, stderr] = [stdout, stderr].map(|text| text.join().unwrap_or_default());
    if !status.success() {
        bail!("`{}`: {status}\n{}", command.get_program().display(), stderr.trim_end());
    }
    Ok(stdout)
}

/// Runs to the end, in sight of the user but for the lines that `answer` knows: to those it is sent an answer.
pub(crate) fn converse(
    command: &mut Command,
    interrupt: &Interrupt,
    mut answer: impl FnMut(&str) -> Option<String>,
) -> Result<ExitStatus> {
    let mut child = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
    let (mut stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("there are no pipes")?;
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody listens any more when we are interrupted.
            let _ = tell.send(line);
        }
    });
    loop {
        match lines.recv_timeout(Duration::from_millis(10)) {
            Ok(line) => match answer(&line) {
                None => println!("{line}"),
                Some(answer) => {
                    // Whoever asked may be gone.
                    let _ = writeln!(stdin, "{answer}");
                }
            },
            Err(RecvTimeoutError::Timeout) if interrupt.raised() => {
                end(&mut child)?;
                bail!("interrupted");
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return wait(&mut child, interrupt),
        }
    }
}

/// Starts what goes on beside us, until it is ended with [`kill`].
pub(crate) fn start(command: &mut Command) -> Result<Child> {
    spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Ends it at once, with all that it has started.
pub(crate) fn kill(child: &mut Child) -> Result<()> {
    // Where it has ended by itself, there may be no such group.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()?;
    Ok(())
}

fn spawn(command: &mut Command) -> Result<Child> {
    let spawned = command.process_group(0).spawn();
    spawned.with_context(|| format!("cannot run `{}`", command.get_program().display()))
}

fn read_aside(output: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read before an error is worth showing.
        let _ = output.map(|mut output| output.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.raised() {
            end(child)?;
            bail!("interrupted");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn end(child: &mut Child) -> Result<()> {
    let group = Pid::from_child(child);
    kill_process_group(group, Signal::TERM)?;
    let patience = Instant::now() + GRACE;
    while child.try_wait()?.is_none() && Instant::now() < patience {
        thread::sleep(Duration::from_millis(10));
    }
    // Its descendants may have outlived it; if none has, there is no such group.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait()?;
    Ok(())
}
