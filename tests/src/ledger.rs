use std::{
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// Effects as the outside world sees them: an append-only file beside the database, which no rollback can undo and
/// no key can suppress. A line is written with one call, so it is whole even if its process is killed, and
/// processes can share a ledger.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    _folder: Option<TempDir>,
}

impl Ledger {
    /// An empty one, gone when it is dropped.
    #[must_use]
    pub fn new() -> Ledger {
        let folder = TempDir::with_prefix("idem-ledger-").expect("a temporary folder");
        let ledger = Ledger::open(&Path::join(folder.path(), "effects"));
        Ledger { _folder: Some(folder), ..ledger }
    }

    /// The one at `path`, which another process has made.
    #[must_use]
    pub fn open(path: &Path) -> Ledger {
        let file = OpenOptions::new().create(true).append(true).open(path).expect("a ledger to append to");
        Ledger { path: path.to_owned(), file, _folder: None }
    }

    /// Where it stands, to be handed to a child process.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the effect for `key` happened, once more.
    pub fn record(&self, key: impl Display) {
        let line = format!("{key}\n");
        assert_eq!(line.lines().count(), 1, "an entry is one line: {line:?}");
        (&self.file).write_all(line.as_bytes()).expect("an entry");
    }

    /// How often the effect for `key` happened.
    #[must_use]
    pub fn count(&self, key: impl Display) -> usize {
        let key = key.to_string();
        self.entries().iter().filter(|entry| **entry == key).count()
    }

    /// How many effects happened.
    #[must_use]
    pub fn total(&self) -> usize {
        self.entries().len()
    }

    /// Every effect, in the order it happened.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.path).expect("a ledger to read");
        text.lines().map(str::to_owned).collect()
    }
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_counts_what_each_of_its_writers_recorded() {
        let ours = Ledger::new();
        let theirs = Ledger::open(ours.path());
        ours.record("billing:1");
        theirs.record("billing:2");
        ours.record("billing:1");
        assert_eq!(ours.entries(), ["billing:1", "billing:2", "billing:1"]);
        assert_eq!((theirs.count("billing:1"), theirs.count("billing"), theirs.total()), (2, 0, 3));
    }
}
