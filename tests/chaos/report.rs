use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use crate::{
    check::Evidence,
    history::{About, Became, Event, Verdict},
    key::{Key, Kind, Promise},
    plan::Harm,
    settings::Settings,
};

/// So long a run has met everything that it is about.
const LONG_ENOUGH: Duration = Duration::from_mins(2);

/// What happened, in numbers.
#[derive(Debug)]
pub(crate) struct Report {
    settings: Settings,
    keys: usize,
    deliveries: usize,
    answers: BTreeMap<String, usize>,
    harms: BTreeMap<&'static str, usize>,
    verdicts: BTreeMap<&'static str, usize>,
    reviewed: usize,
    /// Orders in which a run went on behind another one's phase.
    resumed: usize,
    /// Charges of orders about which a person decided.
    decided: usize,
    /// The clocks that were furthest behind and ahead, in seconds.
    ahead: (i64, i64),
    zombies: usize,
    /// Keys, effects, and keys with more than one effect.
    kinds: BTreeMap<Kind, (usize, usize, usize)>,
    violations: usize,
}

impl Report {
    pub(crate) fn of(settings: &Settings, evidence: &Evidence<'_>, violations: usize) -> Report {
        let mut report = Report {
            settings: *settings,
            keys: 0,
            deliveries: 0,
            answers: BTreeMap::new(),
            harms: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            reviewed: 0,
            resumed: 0,
            decided: 0,
            ahead: (0, 0),
            zombies: 0,
            kinds: BTreeMap::new(),
            violations,
        };
        for entry in evidence.history.entries() {
            report.count(&entry.event);
        }
        for (key, entries) in evidence.history.by_key() {
            report.keys += 1;
            let effects = effects(key, evidence);
            let kind = report.kinds.entry(key.kind).or_default();
            *kind = (kind.0 + 1, kind.1 + effects, kind.2 + usize::from(effects > 1));
            let in_review = entries.iter().any(|entry| {
                matches!(&entry.event, Event::Answered { end, .. } if end.is_refused_as("NeedsReview"))
            });
            report.reviewed += usize::from(in_review);
            let rows = evidence.phase_rows_of(key);
            let by: BTreeSet<_> = rows.iter().filter_map(|row| row.value).collect();
            report.resumed += usize::from(by.len() > 1);
        }
        report
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::Sent { .. } => self.deliveries += 1,
            Event::Answered { end, .. } => {
                *self.answers.entry(end.word()).or_default() += 1;
                self.zombies += usize::from(end.is_rejected_zombie());
            }
            Event::Unanswered { .. } => *self.answers.entry("(none)".to_owned()).or_default() += 1,
            Event::Judged { about, verdict, became, .. } => {
                self.decided += usize::from(*about == About::Charge && *became == Became::Changed);
                let word = match (verdict, became) {
                    (_, Became::Refused(_)) => "refused",
                    (_, Became::Unknown(_)) => "not acknowledged",
                    (_, Became::Overruled) => "overruled a completion",
                    (Verdict::Happened(_), Became::Changed) => "completed",
                    (Verdict::DidNot, Became::Changed) => "freed",
                };
                *self.verdicts.entry(word).or_default() += 1;
            }
            Event::Harmed { harm, .. } => {
                let word = match harm {
                    Harm::Kill => "kills",
                    Harm::Retire => "shutdowns",
                    Harm::Stop(_) => "stops",
                    Harm::Cut => "cuts",
                    Harm::Silence(_) => "blackholes",
                    Harm::Swallow(_) => "swallowed replies",
                    Harm::Refuse(_) => "refused connections",
                    Harm::Delay(..) => "slow connections",
                };
                *self.harms.entry(word).or_default() += 1;
            }
            Event::ServerEnds(ending) => {
                *self.harms.entry("server restarts").or_default() += 1;
                let word = match ending {
                    crate::plan::Ending::Graceful => "- graceful",
                    crate::plan::Ending::Immediate => "- immediate",
                    crate::plan::Ending::Killed => "- kill -9",
                };
                *self.harms.entry(word).or_default() += 1;
            }
            Event::Ready { ahead, .. } => self.ahead = (self.ahead.0.min(*ahead), self.ahead.1.max(*ahead)),
            Event::Started { .. } | Event::Healed { .. } | Event::ServerIsBack | Event::Peace => {}
        }
    }

    fn answered(&self, word: &str) -> usize {
        self.answers.get(word).copied().unwrap_or_default()
    }

    /// What a run must have met, and did not, though it was long enough.
    pub(crate) fn vacuous(&self) -> Vec<&'static str> {
        let Settings { length, backend, broken, .. } = self.settings;
        if length < LONG_ENOUGH || broken.is_some() {
            return Vec::new();
        }
        let met = |word| self.harms.get(word).copied().unwrap_or_default();
        let resolved = self.verdicts.get("completed").zip(self.verdicts.get("freed"));
        let restarts = if backend == idem_tests::Backend::Sqlite { 1 } else { met("server restarts") };
        let all = [
            ("kill", met("kills")),
            ("stop", met("stops")),
            ("restart of the server", restarts),
            ("takeover", self.answered("TookOver")),
            ("effect that was found by asking", self.answered("Probed")),
            ("write of a zombie that was rejected", self.zombies),
            ("replay", self.answered("Replayed")),
            ("key in review", self.reviewed),
            ("order that went on behind another run's phase", self.resumed),
            ("charge of an order that a person judged", self.decided),
            ("resolution of either kind", usize::from(resolved.is_some())),
        ];
        all.into_iter().filter(|(_, count)| *count == 0).map(|(what, _)| what).collect()
    }
}

fn effects(key: Key, evidence: &Evidence<'_>) -> usize {
    match key.kind.promise() {
        Promise::RowOnce => evidence.rows_of(key).len(),
        _ => evidence.effects_of(key).len(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { backend, seed, length, .. } = self.settings;
        writeln!(f, "\nchaos on {backend}, seed {seed}, {} s", length.as_secs())?;
        let mut row = |what: &str, count: usize| writeln!(f, "  {what:<28} {count:>8}");
        row("keys", self.keys)?;
        row("deliveries", self.deliveries)?;
        for (word, count) in &self.answers {
            row(&format!("  {word}"), *count)?;
        }
        for (word, count) in &self.harms {
            row(word, *count)?;
        }
        row("takeovers that completed", self.answered("TookOver"))?;
        row("effects found by asking", self.answered("Probed"))?;
        row("rejected writes of zombies", self.zombies)?;
        row("keys in review", self.reviewed)?;
        row("orders that went on", self.resumed)?;
        row("charges that a person judged", self.decided)?;
        for (word, count) in &self.verdicts {
            row(&format!("  a person: {word}"), *count)?;
        }
        writeln!(f, "  {:<28} {:>8} {:>8} {:>12}", "by kind of job", "keys", "effects", "more than 1")?;
        for (kind, (keys, effects, repeated)) in &self.kinds {
            let name = format!("  {} ({:?})", kind.name(), kind.promise());
            writeln!(f, "  {name:<28} {keys:>8} {effects:>8} {repeated:>12}")?;
        }
        let (behind, ahead) = self.ahead;
        writeln!(f, "  the workers' clocks: {} s behind to {ahead} s ahead", -behind)?;
        writeln!(f, "  {:<28} {:>8}", "violations", self.violations)
    }
}
