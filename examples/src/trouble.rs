use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

/// What goes wrong between the body of a job and the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trouble {
    /// The transaction is dropped.
    Drop,
    /// The process dies.
    Die,
}

/// The trouble of one run, drawn from a seed: it strikes the first attempt at some of the deliveries.
#[derive(Debug)]
pub struct Troubles(Mutex<BTreeMap<usize, Trouble>>);

impl Troubles {
    /// So many of the deliveries, half of them with one trouble and half with the other.
    #[must_use]
    pub fn draw(seed: u64, count: usize, deliveries: usize) -> Self {
        let mut numbers: Vec<usize> = (0..deliveries).collect();
        let mut dice = Dice(seed);
        let kinds = [Trouble::Drop, Trouble::Die].into_iter().cycle();
        let draw = |kind| {
            let left = u64::try_from(numbers.len()).ok().filter(|left| *left > 0)?;
            let drawn = usize::try_from(dice.roll() % left).ok()?;
            Some((numbers.swap_remove(drawn), kind))
        };
        Self(Mutex::new(kinds.take(count).map_while(draw).collect()))
    }

    /// The trouble that strikes this delivery now. There is none the next time.
    pub fn strike(&self, delivery: usize) -> Option<Trouble> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&delivery)
    }
}

/// Numbers that look like chance: `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(troubles: &Troubles) -> Vec<(usize, Trouble)> {
        (0..1000).filter_map(|number| Some((number, troubles.strike(number)?))).collect()
    }

    #[test]
    fn a_seed_draws_the_same_trouble_each_time_and_half_of_each_kind() {
        let first = struck(&Troubles::draw(7, 100, 1000));
        assert_eq!(first, struck(&Troubles::draw(7, 100, 1000)));
        assert_ne!(first, struck(&Troubles::draw(8, 100, 1000)));
        assert_eq!(first.len(), 100);
        assert_eq!(first.iter().filter(|(_, trouble)| *trouble == Trouble::Die).count(), 50);
    }

    #[test]
    fn there_is_no_more_trouble_than_deliveries_and_it_strikes_once() {
        let troubles = Troubles::draw(7, 100, 3);
        assert_eq!(struck(&troubles).len(), 3);
        assert_eq!(struck(&troubles), []);
        assert_eq!(struck(&Troubles::draw(7, 100, 0)), []);
    }
}
