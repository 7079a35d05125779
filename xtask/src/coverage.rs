use std::collections::BTreeMap;

use crate::{backend, fleet::Fleet};

/// How many cases each back end has in its suite, as the test binaries list them.
#[derive(Debug)]
pub(crate) struct Coverage(BTreeMap<&'static str, usize>);

impl Coverage {
    /// Reads lines such as `conformance::sqlite::a_stale_claim_is_taken_over: test`.
    pub(crate) fn of_listing(listing: &str) -> Coverage {
        let tests: Vec<_> = listing.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        let cases = |suite: &str| tests.iter().filter(|test| test.starts_with(suite)).count();
        Coverage(backend::suites().map(|(name, suite)| (name, cases(suite))).collect())
    }

    pub(crate) fn cases(&self, backend: &str) -> usize {
        self.0.get(backend).copied().unwrap_or_default()
    }

    /// A line per back end; for one that is missing, how to get it.
    pub(crate) fn report(&self, fleet: &Fleet, passed: bool) {
        println!("\nback ends");
        for (name, _) in backend::suites() {
            let cases = self.cases(name);
            let missing = fleet.missing().find(|(missing, _)| missing.name == name);
            let line = match missing {
                Some((_, missing)) => format!("NOT COVERED: {cases} cases left out: {missing}"),
                None if cases == 0 => "NOT COVERED: no case in this run".to_owned(),
                None if passed => format!("covered: {cases} cases"),
                None => format!("ran, amid failures: {cases} cases"),
            };
            println!("  {name:<9} {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_by_the_back_end_in_their_path() {
        let coverage = Coverage::of_listing(
            "cases::a1::sqlite: test\n\
             conformance::memory::a_claim_is_taken_once: test\n\
             conformance::sqlite::a_claim_is_taken_once: test\n\
             conformance::sqlite::a_stale_claim_is_taken_over: test\n\
             conformance::sqlite::claims: benchmark\n\
             \n\
             4 tests, 1 benchmark\n",
        );
        assert_eq!(coverage.cases("memory"), 1);
        assert_eq!(coverage.cases("sqlite"), 2);
        assert_eq!(coverage.cases("postgres"), 0);
    }
}
