use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    process,
    str::FromStr,
};

use crate::{clock, delivery::Delivery, key::Key};

/// A line of the ledger of effects, which is not Idem's: neither a rollback nor a death undoes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) key: Key,
    pub(crate) delivery: u64,
    pub(crate) pid: u32,
    pub(crate) attempt: u32,
    pub(crate) fence: i64,
    pub(crate) at: u64,
}

impl Effect {
    /// This process's, now.
    pub(crate) fn of(delivery: &Delivery, attempt: u32, fence: i64) -> Effect {
        let Delivery { key, id, .. } = *delivery;
        Effect { key, delivery: id, pid: process::id(), attempt, fence, at: clock::now() }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effect { key, delivery, pid, attempt, fence, at } = self;
        write!(f, "{key} {delivery} {pid} {attempt} {fence} {at}")
    }
}

impl FromStr for Effect {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let [key, delivery, pid, attempt, fence, at] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("{line:?} is no effect"));
        };
        let number = |error| format!("{line:?}: {error}");
        Ok(Effect {
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
pub(crate) struct Effects {
    path: PathBuf,
    read: u64,
    of_key: BTreeMap<Key, Vec<Effect>>,
}

impl Effects {
    pub(crate) fn in_ledger(path: PathBuf) -> Effects {
        Effects { path, read: 0, of_key: BTreeMap::new() }
    }

    /// Those, without a ledger to read.
    pub(crate) fn of(effects: &[Effect]) -> Effects {
        let mut of_key: BTreeMap<Key, Vec<Effect>> = BTreeMap::new();
        for effect in effects {
            of_key.entry(effect.key).or_default().push(*effect);
        }
        Effects { path: PathBuf::new(), read: 0, of_key }
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
            let effect: Effect = line.parse().expect("a line of ours");
            self.of_key.entry(effect.key).or_default().push(effect);
        }
    }

    pub(crate) fn of_key(&self, key: Key) -> &[Effect] {
        self.of_key.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Effect> {
        self.of_key.values().flatten()
    }
}
