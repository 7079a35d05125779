//! Ratios of paired measurements, with their spread.

/// Pairs of throughputs, one for each round.
#[derive(Debug, Default)]
pub(crate) struct Ratio(Vec<(f64, f64)>);

impl Ratio {
    /// A round: jobs per second by hand, and of the library.
    pub(crate) fn add(&mut self, by_hand: f64, ours: f64) {
        self.0.push((by_hand, ours));
    }

    /// A line of the table.
    pub(crate) fn row(&self, work: &str, callers: usize) -> [String; 6] {
        let median_of = |pick: fn(&(f64, f64)) -> f64| median(self.0.iter().map(pick).collect());
        let (low, high) = self.interval();
        [
            work.to_owned(),
            callers.to_string(),
            format!("{:.0}", median_of(|pair| pair.0)),
            format!("{:.0}", median_of(|pair| pair.1)),
            format!("{:.2}", median_of(|pair| pair.1 / pair.0)),
            format!("{low:.2} – {high:.2}"),
        ]
    }

    /// The bootstrap interval of the median ratio: what 95 % of resampled rounds give.
    fn interval(&self) -> (f64, f64) {
        const RESAMPLES: usize = 2_000;
        let ratios: Vec<f64> = self.0.iter().map(|(by_hand, ours)| ours / by_hand).collect();
        if ratios.is_empty() {
            return (f64::NAN, f64::NAN);
        }
        // A fixed sequence is random enough to draw rounds, and gives the same interval for the same numbers.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ratios[usize::try_from(state % ratios.len() as u64).unwrap_or(0)]
        };
        let mut medians: Vec<f64> =
            (0..RESAMPLES).map(|_| median((0..ratios.len()).map(|_| draw()).collect())).collect();
        medians.sort_by(f64::total_cmp);
        (medians[RESAMPLES / 40], medians[RESAMPLES - RESAMPLES / 40 - 1])
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median() {
        let mut ratio = Ratio::default();
        for round in 0..15 {
            ratio.add(100.0, 200.0 + f64::from(round));
        }
        let (low, high) = ratio.interval();
        assert!(low <= 2.07 && 2.07 <= high && high - low < 0.15, "{low} {high}");
    }
}
