use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    process,
    str::FromStr,
};

use crate::{clock, delivery::Delivery, key::Key};

/// A line of the ledger, which is not Idem's: neither a rollback nor a death undoes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) step: Step,
    pub(crate) key: Key,
    pub(crate) delivery: u64,
    pub(crate) pid: u32,
    pub(crate) attempt: u32,
    pub(crate) fence: i64,
    pub(crate) at: u64,
}

/// What it tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A body was entered.
    Begin,
    /// It had its effect.
    Effect,
    /// A phase had its effect.
    Phase(Phase),
}

/// A phase of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Charge,
    Reserve,
    Receipt,
}

impl Phase {
    pub(crate) const ALL: [Phase; 3] = [Phase::Charge, Phase::Reserve, Phase::Receipt];

    /// As its row's key ends.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Charge => "charge",
            Phase::Reserve => "reserve",
            Phase::Receipt => "receipt",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Begin => "Begin",
            Step::Effect => "Effect",
            Step::Phase(phase) => phase.name(),
        })
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "Begin" => Ok(Step::Begin),
            "Effect" => Ok(Step::Effect),
            _ => {
                let phase = Phase::ALL.into_iter().find(|phase| phase.name() == word);
                phase.map(Step::Phase).ok_or_else(|| format!("{word:?} tells of nothing that we know"))
            }
        }
    }
}

impl Line {
    /// This process's, now.
    pub(crate) fn of(step: Step, delivery: &Delivery, attempt: u32, fence: i64) -> Line {
        let Delivery { key, id, .. } = *delivery;
        Line { step, key, delivery: id, pid: process::id(), attempt, fence, at: clock::now() }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { step, key, delivery, pid, attempt, fence, at } = self;
        write!(f, "{step} {key} {delivery} {pid} {attempt} {fence} {at}")
    }
}

impl FromStr for Line {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let [step, key, delivery, pid, attempt, fence, at] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("{line:?} is no line of ours"));
        };
        let number = |error| format!("{line:?}: {error}");
        Ok(Line {
            step: step.parse()?,
            key: key.parse()?,
            delivery: delivery.parse().map_err(number)?,
            pid: pid.parse().map_err(number)?,
            attempt: attempt.parse().map_err(number)?,
            fence: fence.parse().map_err(number)?,
            at: at.parse().map_err(number)?,
        })
    }
}

/// The ledger as far as it has been read.
#[derive(Debug)]
pub(crate) struct Book {
    path: PathBuf,
    read: u64,
    begins: BTreeMap<Key, Vec<Line>>,
    effects: BTreeMap<Key, Vec<Line>>,
    phases: BTreeMap<Key, Vec<Line>>,
}

impl Book {
    pub(crate) fn at(path: PathBuf) -> Book {
        Book { path, read: 0, begins: BTreeMap::new(), effects: BTreeMap::new(), phases: BTreeMap::new() }
    }

    /// One with these lines, and no more to read.
    pub(crate) fn of(lines: &[Line]) -> Book {
        let mut book = Book::at(PathBuf::new());
        for line in lines {
            book.enter(*line);
        }
        book
    }

    /// Reads what has come since. A line that is not whole yet waits for the next time.
    pub(crate) fn refresh(&mut self) {
        let mut file = fs::File::open(&self.path).expect("a ledger to read");
        file.seek(SeekFrom::Start(self.read)).expect("a file on a disk");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("a ledger to read");
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        for line in text[..whole].lines() {
            self.enter(line.parse().expect("a line of ours"));
        }
    }

    fn enter(&mut self, line: Line) {
        let lines = match line.step {
            Step::Begin => &mut self.begins,
            Step::Effect => &mut self.effects,
            Step::Phase(_) => &mut self.phases,
        };
        lines.entry(line.key).or_default().push(line);
    }

    pub(crate) fn begins(&self, key: Key) -> &[Line] {
        self.begins.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn effects(&self, key: Key) -> &[Line] {
        self.effects.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The effects of the key's phases.
    pub(crate) fn phases(&self, key: Key) -> &[Line] {
        self.phases.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Line> {
        self.begins.values().chain(self.effects.values()).chain(self.phases.values()).flatten()
    }
}
