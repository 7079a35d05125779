//! Child processes to kill, stop and talk to.
//!
//! The child's side is a test of the same binary, ignored and so run only as a child, so that both sides of a
//! scenario stand in one file: see this module's own tests.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{self, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Marks the environment of a child, and its messages amid whatever else it prints.
const MARK: &str = "IDEM_TEST_CHILD";

/// How long a child may take for what is asked of it.
const PATIENCE: Duration = Duration::from_mins(1);

/// The command that runs one ignored test of this test binary as a child. `path` is the test's name as
/// `cargo test -- --list` gives it.
#[must_use]
pub fn test(path: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test binary"));
    command.args([path, "--exact", "--ignored", "--nocapture", "--test-threads=1"]).env(MARK, path);
    command
}

/// What a child says to its parent on this line of its output, if it is no other line.
#[must_use]
pub fn message(line: &str) -> Option<&str> {
    line.split_once(MARK).map(|(_, message)| message.trim())
}

/// A child process; killed when it is dropped.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    messages: Receiver<String>,
    transcript: Arc<Mutex<String>>,
}

impl Child {
    /// Starts one.
    #[must_use]
    pub fn spawn(command: &mut Command) -> Child {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = piped.spawn().expect("a child process");
        let transcript = Arc::new(Mutex::new(String::new()));
        let (tell, messages) = mpsc::channel();
        let stdout = process.stdout.take().expect("piped");
        let stderr = process.stderr.take().expect("piped");
        follow(stdout, &transcript, move |line| {
            if let Some(message) = message(line) {
                // The parent may have stopped listening.
                let _ = tell.send(message.to_owned());
            }
        });
        follow(stderr, &transcript, |_| {});
        Child { process, messages, transcript }
    }

    /// Waits for the next message, which must begin with `word`, and gives what follows it. Blocks.
    pub fn expect(&mut self, word: &str) -> String {
        let message = match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no {word:?} from the child in time\n{}", self.transcript())
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the child ended before {word:?}\n{}", self.transcript())
            }
        };
        match message.strip_prefix(word) {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => rest.trim_start().to_owned(),
            _ => panic!("the child said {message:?} instead of {word:?}\n{}", self.transcript()),
        }
    }

    /// Sends a line, which [`Parent::hear`] gives on the other side.
    pub fn say(&mut self, line: &str) {
        let stdin = self.process.stdin.as_mut().expect("piped");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("a child that listens");
    }

    /// Ends it the hard way (SIGKILL) and waits until it is gone.
    pub fn kill(&mut self) -> ExitStatus {
        self.process.kill().expect("a child of ours");
        self.process.wait().expect("a child of ours")
    }

    /// Waits until it ends by itself. Blocks.
    pub fn wait(&mut self) -> ExitStatus {
        let patience = Instant::now() + PATIENCE;
        loop {
            match self.process.try_wait().expect("a child of ours") {
                Some(status) => return status,
                None if Instant::now() < patience => thread::sleep(Duration::from_millis(5)),
                None => panic!("the child does not end\n{}", self.transcript()),
            }
        }
    }

    /// Freezes it (SIGSTOP), and has done so when it returns.
    #[cfg(unix)]
    pub fn stop(&mut self) {
        self.signal(rustix::process::Signal::STOP);
        let stopped = rustix::process::waitpid(Some(self.pid()), rustix::process::WaitOptions::UNTRACED);
        let (_, status) = stopped.expect("a child of ours").expect("a wait that blocks");
        assert!(status.stopped(), "the child ended instead of stopping\n{}", self.transcript());
    }

    /// Lets a stopped one go on (SIGCONT).
    #[cfg(unix)]
    pub fn resume(&mut self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// Everything it has printed so far.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg(unix)]
    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process)
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("a child of ours");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Either fails only if the child has been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn follow(
    output: impl Read + Send + 'static,
    transcript: &Arc<Mutex<String>>,
    mut each: impl FnMut(&str) + Send + 'static,
) {
    let transcript = Arc::clone(transcript);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut transcript = transcript.lock().unwrap_or_else(PoisonError::into_inner);
            transcript.push_str(&line);
            transcript.push('\n');
            drop(transcript);
            each(&line);
        }
    });
}

/// The child's end of the conversation.
#[derive(Debug)]
pub struct Parent(());

impl Parent {
    /// The parent that spawned this process; `None` if an ignored test was asked for by hand.
    #[must_use]
    pub fn attach() -> Option<Parent> {
        env::var_os(MARK).map(|_| Parent(()))
    }

    /// Sends a line, which [`Child::expect`] waits for.
    pub fn say(&self, line: &str) {
        // Past the test harness, which would capture `println!`; on a line of its own, whatever stands before it.
        let mut stdout = std::io::stdout().lock();
        write!(stdout, "\n{MARK} {line}\n").and_then(|()| stdout.flush()).expect("a parent that listens");
    }

    /// Waits for the next line. Blocks; ends this process if the parent is gone.
    #[must_use]
    pub fn hear(&self) -> String {
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(length) if length > 0 => line.trim_end().to_owned(),
            _ => process::exit(70),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    #[ignore = "the child of another test"]
    fn answers() {
        let Some(parent) = Parent::attach() else { return };
        parent.say(&format!("entered {}", env::var("KEY").expect("set by the parent")));
        loop {
            match parent.hear().as_str() {
                "end" => return,
                line => parent.say(&format!("heard {line}")),
            }
        }
    }

    fn answering() -> Child {
        let mut child = Child::spawn(test("child::tests::answers").env("KEY", "billing:7"));
        assert_eq!(child.expect("entered"), "billing:7");
        child
    }

    #[test]
    fn a_child_talks_and_ends_by_itself() {
        let mut child = answering();
        child.say("one two");
        assert_eq!(child.expect("heard"), "one two");
        child.say("end");
        assert!(child.wait().success(), "{}", child.transcript());
    }

    #[test]
    fn a_killed_child_is_gone() {
        let mut child = answering();
        assert_eq!(child.kill().signal(), Some(9));
    }

    #[test]
    fn a_stopped_child_says_nothing_until_it_is_resumed() {
        let mut child = answering();
        child.stop();
        child.say("hello");
        let silence = child.messages.recv_timeout(Duration::from_millis(200));
        assert_eq!(silence, Err(RecvTimeoutError::Timeout));
        child.resume();
        assert_eq!(child.expect("heard"), "hello");
    }

    #[test]
    #[should_panic(expected = "the child ended before \"ready\"")]
    fn a_child_that_dies_early_is_reported_with_what_it_said() {
        Child::spawn(Command::new("true").env(MARK, "")).expect("ready");
    }
}
