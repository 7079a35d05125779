//! What an attribute says of its function: the template, the mode and the policies.

mod phase;

use std::{
    fmt,
    sync::{OnceLock, atomic::AtomicBool},
    time::Duration,
};

use self::phase::Phases;

/// Which side of the effect is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Claim, run, complete: twice is worse than never.
    LockFirst,
    /// Look up, run, record: never is worse than twice.
    RecordAfter,
    /// Claim, body and completion in the caller's transaction: neither.
    Transactional,
}

impl Mode {
    /// The word that attribute and row use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LockFirst => "lock_first",
            Self::RecordAfter => "record_after",
            Self::Transactional => "transactional",
        }
    }
}

/// What happens to a claim whose worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OnStale {
    /// The next call takes the claim over and runs again.
    Retry,
    /// The next call takes the claim over and asks the job's probe whether the effect happened, before anything runs.
    /// A call of a job that has no probe alerts.
    Probe,
    /// The key needs review: a person decides.
    Alert,
}

impl OnStale {
    /// The word that attribute and row use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Probe => "probe",
            Self::Retry => "retry",
        }
    }

    /// Reads a row's word. A word of a newer version reads as the strictest policy.
    pub(crate) fn from_row(word: &str) -> Self {
        match word {
            "retry" => Self::Retry,
            "probe" => Self::Probe,
            _ => Self::Alert,
        }
    }
}

/// What an `Err` of the body says of its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnError {
    /// Nobody knows whether the effect happened: the claim is stale at once, and `on_stale` decides.
    Hold,
    /// The effect did not happen: the key is free at once.
    Release,
    /// It never will: the key is failed for good, and repeats get the recorded message.
    Record,
}

/// How a job decides between the answers of [`OnError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorRule {
    /// Always [`OnError::Hold`].
    Hold,
    /// Always [`OnError::Release`].
    Release,
    /// [`OnError::Release`] before `current().effect_starts()`, [`OnError::Hold`] after it.
    ByMark,
    /// Always [`OnError::Record`].
    Record,
}

/// The lease where none is said.
const DEFAULT_LEASE: Duration = Duration::from_mins(1);

/// One annotated function, as its attribute describes it.
///
/// Made by `#[idempotent]`; read through [`jobs::all`](crate::jobs::all).
pub struct Job {
    name: &'static str,
    label: Option<&'static str>,
    template: &'static [&'static str],
    module: &'static str,
    file: &'static str,
    line: u32,
    mode: Mode,
    stale_after: Option<Duration>,
    heartbeat: bool,
    on_stale: OnStale,
    max_takeovers: u32,
    on_error: Option<ErrorRule>,
    wait_for: Option<Duration>,
    ttl: Option<Duration>,
    keyed_by_self: bool,
    allow_overlap: &'static [&'static str],
    /// The first `Self` type this job ran for.
    receiver: OnceLock<String>,
    /// Whether it is known to have phases.
    phased: AtomicBool,
    /// Of a phase: what it is in each of the jobs that enter it.
    phases: Phases,
    path: OnceLock<String>,
    shape: OnceLock<String>,
}

/// The construction, for the attribute's expansion.
#[doc(hidden)]
impl Job {
    const fn new(
        mode: Mode,
        ttl: Option<Duration>,
        name: &'static str,
        template: &'static [&'static str],
        (module, file, line): (&'static str, &'static str, u32),
    ) -> Self {
        Self {
            name,
            label: None,
            template,
            module,
            file,
            line,
            mode,
            stale_after: None,
            heartbeat: true,
            on_stale: OnStale::Alert,
            max_takeovers: 5,
            on_error: None,
            wait_for: None,
            ttl,
            keyed_by_self: false,
            allow_overlap: &[],
            receiver: OnceLock::new(),
            phased: AtomicBool::new(false),
            phases: Phases::new(),
            path: OnceLock::new(),
            shape: OnceLock::new(),
        }
    }

    #[must_use]
    pub const fn lock_first(
        name: &'static str,
        template: &'static [&'static str],
        module: &'static str,
        file: &'static str,
        line: u32,
    ) -> Self {
        Self::new(Mode::LockFirst, None, name, template, (module, file, line))
    }

    #[must_use]
    pub const fn record_after(
        name: &'static str,
        template: &'static [&'static str],
        module: &'static str,
        file: &'static str,
        line: u32,
    ) -> Self {
        let day = Duration::from_hours(24);
        Self::new(Mode::RecordAfter, Some(day), name, template, (module, file, line))
    }

    #[must_use]
    pub const fn transactional(
        name: &'static str,
        template: &'static [&'static str],
        module: &'static str,
        file: &'static str,
        line: u32,
    ) -> Self {
        Self::new(Mode::Transactional, None, name, template, (module, file, line)).wait(10)
    }

    #[must_use]
    pub const fn label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    #[must_use]
    pub const fn stale_after(mut self, seconds: u64) -> Self {
        self.stale_after = Some(Duration::from_secs(seconds));
        self
    }

    #[must_use]
    pub const fn without_heartbeat(mut self) -> Self {
        self.heartbeat = false;
        self
    }

    #[must_use]
    pub const fn on_stale(mut self, policy: OnStale) -> Self {
        self.on_stale = policy;
        self
    }

    #[must_use]
    pub const fn max_takeovers(mut self, takeovers: u32) -> Self {
        self.max_takeovers = takeovers;
        self
    }

    #[must_use]
    pub const fn on_error(mut self, rule: ErrorRule) -> Self {
        self.on_error = Some(rule);
        self
    }

    #[must_use]
    pub const fn wait(mut self, seconds: u64) -> Self {
        self.wait_for = Some(Duration::from_secs(seconds));
        self
    }

    #[must_use]
    pub const fn without_wait(mut self) -> Self {
        self.wait_for = None;
        self
    }

    #[must_use]
    pub const fn ttl(mut self, seconds: u64) -> Self {
        self.ttl = Some(Duration::from_secs(seconds));
        self
    }

    #[must_use]
    pub const fn ttl_forever(mut self) -> Self {
        self.ttl = None;
        self
    }

    #[must_use]
    pub const fn keyed_by_self(mut self) -> Self {
        self.keyed_by_self = true;
        self
    }

    /// Phases stand in its body.
    #[must_use]
    pub const fn phased(mut self) -> Self {
        self.phased = AtomicBool::new(true);
        self
    }

    #[must_use]
    pub const fn allow_overlap(mut self, paths: &'static [&'static str]) -> Self {
        self.allow_overlap = paths;
        self
    }
}

impl Job {
    /// The label that rows, logs and metrics carry: `name = "…"`, or `crate::module::function`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.label.unwrap_or_else(|| self.path())
    }

    /// `crate::module::function`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.get_or_init(|| format!("{}::{}", self.module, self.name))
    }

    /// Where the function stands, as `file:line`.
    #[must_use]
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// The fixed texts of the key template, one before, between and after the placeholders.
    #[must_use]
    pub const fn template(&self) -> &'static [&'static str] {
        self.template
    }

    /// The template with anonymous placeholders: `billing:<>:<>`. Rows remember it.
    #[must_use]
    pub fn shape(&self) -> &str {
        self.shape.get_or_init(|| self.template.join("<>"))
    }

    /// Which side of the effect is recorded.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The lease: how long a claim stands without a heartbeat.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        match self.stale_after {
            Some(lease) => lease,
            None => DEFAULT_LEASE,
        }
    }

    /// Whether the lease is renewed, every third of it, while the job runs.
    #[must_use]
    pub const fn heartbeat(&self) -> bool {
        self.heartbeat
    }

    /// What happens to a claim whose worker died.
    #[must_use]
    pub const fn stale_policy(&self) -> OnStale {
        self.on_stale
    }

    /// After so many takeovers of one key it needs review all the same.
    #[must_use]
    pub const fn takeover_limit(&self) -> u32 {
        self.max_takeovers
    }

    /// How the job judges an `Err` of its body.
    #[must_use]
    pub const fn error_rule(&self) -> ErrorRule {
        match (self.on_error, self.mode, self.on_stale) {
            (Some(rule), ..) => rule,
            (None, Mode::LockFirst, OnStale::Alert | OnStale::Probe) => ErrorRule::Hold,
            (None, ..) => ErrorRule::Release,
        }
    }

    /// How long a call waits for a busy key; `None` answers at once.
    #[must_use]
    pub const fn wait_limit(&self) -> Option<Duration> {
        self.wait_for
    }

    /// How long a completed key suppresses repeats; `None` is for ever.
    #[must_use]
    pub const fn retention(&self) -> Option<Duration> {
        self.ttl
    }

    pub(crate) const fn overlaps_allowed(&self) -> &'static [&'static str] {
        self.allow_overlap
    }

    /// The other `Self` type and this one, where the job already ran for another and its key does not tell them apart.
    ///
    /// `body` is the type name of the body's closure: `<a::X as a::Work>::charge::{{closure}}`.
    pub(crate) fn other_receiver<'a>(&'a self, body: &'a str) -> Option<(&'a str, &'a str)> {
        if self.keyed_by_self || !self.allow_overlap.is_empty() {
            return None;
        }
        let receiver = receiver_of(body, self.name);
        let first = self.receiver.get_or_init(|| receiver.to_owned());
        (first != receiver).then_some((first, receiver))
    }
}

/// What stands before `::name` at the outer bracket level of a closure's type name.
fn receiver_of<'a>(body: &'a str, name: &str) -> &'a str {
    let mut depth = 0_usize;
    let mut found = body.len();
    for (at, c) in body.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' if !body[..at].ends_with('-') => depth = depth.saturating_sub(1),
            ':' if depth == 0 => {
                let rest = &body[at..];
                let named = rest.strip_prefix("::").map(|rest| rest.strip_prefix("r#").unwrap_or(rest));
                let named = named.and_then(|rest| rest.strip_prefix(name));
                if named.is_some_and(|rest| rest.is_empty() || rest.starts_with(['<', ':'])) {
                    found = at;
                }
            }
            _ => {}
        }
    }
    &body[..found]
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name())
            .field("template", &self.shape())
            .field("mode", &self.mode)
            .field("location", &self.location())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::receiver_of;

    #[test]
    fn a_receiver_is_what_stands_before_the_function() {
        let cases = [
            ("app::charge::{{closure}}", "app"),
            ("<app::X as app::Work>::charge::{{closure}}", "<app::X as app::Work>"),
            ("app::Svc<app::charge::A>::charge<u8>::{{closure}}", "app::Svc<app::charge::A>"),
            ("app::r#charge::{{closure}}", "app"),
            ("app::Svc<fn(u8) -> u8>::charge::{{closure}}", "app::Svc<fn(u8) -> u8>"),
        ];
        for (body, receiver) in cases {
            assert_eq!(receiver_of(body, "charge"), receiver);
        }
    }
}
