use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// A charge as its provider tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The provider's name for it.
    pub id: String,
    /// What it is for.
    pub order: u64,
    /// How much it is.
    pub cents: u64,
}

/// The books of a payment provider that keeps idempotency keys: a file to which every charge is appended, under the key
/// that it was asked for with. Two charges of one order under two keys would stand in them both.
#[derive(Debug)]
pub struct Charges(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
struct Booking {
    idempotency_key: String,
    #[serde(flatten)]
    charge: Charge,
}

impl Charges {
    /// The books in a file, which the first look creates.
    #[must_use]
    pub fn at(file: impl AsRef<Path>) -> Self {
        Self(file.as_ref().to_owned())
    }

    /// The charge under a key: the one that was booked before, or else a new one.
    pub(crate) fn book(&self, key: &str, order: u64, cents: u64) -> io::Result<Charge> {
        let (mut file, bookings) = self.open()?;
        let number = bookings.len() + 1;
        if let Some(charge) = under(key, bookings) {
            return Ok(charge);
        }
        let charge = Charge { id: format!("ch_{number}"), order, cents };
        let booking = Booking { idempotency_key: key.to_owned(), charge };
        file.write_all(format!("{}\n", serde_json::to_string(&booking)?).as_bytes())?;
        Ok(booking.charge)
    }

    /// The charge that was booked under a key.
    pub(crate) fn find(&self, key: &str) -> io::Result<Option<Charge>> {
        Ok(under(key, self.open()?.1))
    }

    /// How many charges there are of these orders, repeats included.
    ///
    /// # Errors
    ///
    /// The file cannot be read as the books of a provider.
    pub fn count(&self, of: &BTreeSet<u64>) -> io::Result<u64> {
        let (_, bookings) = self.open()?;
        Ok(bookings.iter().map(|booking| u64::from(of.contains(&booking.charge.order))).sum())
    }

    /// The file and what stands in it. Nobody else has it open until it is dropped: providers of several processes
    /// share it.
    fn open(&self) -> io::Result<(File, Vec<Booking>)> {
        let mut file = File::options().read(true).append(true).create(true).open(&self.0)?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let bookings = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok((file, bookings))
    }
}

fn under(key: &str, bookings: Vec<Booking>) -> Option<Charge> {
    bookings.into_iter().find(|booking| booking.idempotency_key == key).map(|booking| booking.charge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_charged_once_and_another_key_again() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let charges = Charges::at(folder.path().join("charges.jsonl"));
        let first = charges.book("a", 1001, 2400)?;
        assert_eq!(charges.book("a", 1001, 2400)?, first);
        assert_eq!(charges.find("a")?, Some(first));
        assert_eq!(charges.find("b")?, None);
        assert_eq!(charges.count(&BTreeSet::from([1001]))?, 1);
        charges.book("b", 1001, 2400)?;
        assert_eq!(charges.count(&BTreeSet::from([1001]))?, 2);
        assert_eq!(charges.count(&BTreeSet::from([1002]))?, 0);
        Ok(())
    }
}
