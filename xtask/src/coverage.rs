use std::collections::BTreeMap;

use crate::{backend, fleet::Fleet};

/// How many conformance cases each back end has, as the test binaries list them.
#[derive(Debug)]
pub(crate) struct Coverage(BTreeMap<&'static str, usize>);

impl Coverage {
    /// What the tests of a back end's suite begin with.
    pub(crate) fn prefix(backend: &str) -> String {
        format!("conformance::{backend}::")
    }

    /// Reads lines such as `conformance::sqlite::a_stale_claim_is_taken_over: test`.
    pub(crate) fn of_listing(listing: &str) -> Coverage {
        let tests: Vec<_> = listing.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        let cases =
            |name: &str| tests.iter().filter(|test| test.starts_with(&Coverage::prefix(name))).count();
        Coverage(backend::names().map(|name| (name, cases(name))).collect())
    }

    pub(crate) fn cases(&self, backend: &str) -> usize {
        self.0.get(backend).copied().unwrap_or_default()
    }

    /// A line per back end; for one that is missing, how to get it.
    pub(crate) fn report(&self, fleet: &Fleet, passed: bool) {
        println!("\nback ends");
        for name in backend::names() {
            let cases = self.cases(name);
            let missing = fleet.missing().find(|(missing, _)| *missing == name);
            let line = match missing {
                Some((_, missing)) => format!("NOT COVERED: {cases} conformance cases left out: {missing}"),
                None if cases == 0 => "NOT COVERED: no conformance case in this run".to_owned(),
                None if passed => format!("covered: {cases} conformance cases"),
                None => format!("ran, amid failures: {cases} conformance cases"),
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
