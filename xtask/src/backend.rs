use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

use crate::{coverage::Coverage, fleet::Fleet, server::SERVERS};

/// The back ends that need no server, with what their tests begin with.
const EMBEDDED: [(&str, &str); 2] =
    [("memory", "conformance::memory::"), ("sqlite", "conformance::sqlite::")];

const ALL: &str = "all";

/// Every back end, and whatever else tests cannot do without, with what those tests begin with.
pub(crate) fn suites() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMBEDDED.into_iter().chain(SERVERS.iter().map(|server| (server.name, server.suite)))
}

fn names() -> impl Iterator<Item = &'static str> {
    suites().map(|(name, _)| name)
}

/// The back ends a run must not do without.
#[derive(Debug)]
pub(crate) struct Requirement(Vec<&'static str>);

impl Requirement {
    /// What `--require` accepts.
    pub(crate) fn accepted() -> PossibleValuesParser {
        PossibleValuesParser::new(names().chain([ALL]))
    }

    pub(crate) fn new(asked: &[String]) -> Requirement {
        let is_asked = |name: &str| asked.iter().any(|asked| asked == ALL || asked == name);
        Requirement(names().filter(|name| is_asked(name)).collect())
    }

    pub(crate) fn ensure_present(&self, fleet: &Fleet) -> Result<()> {
        match fleet.missing().find(|(server, _)| self.0.contains(&server.name)) {
            Some((server, missing)) => bail!("{} is required and missing: {missing}", server.name),
            None => Ok(()),
        }
    }

    /// A back end without a single case has not been tested, whatever its server did.
    pub(crate) fn ensure_covered(&self, coverage: &Coverage) -> Result<()> {
        match self.0.iter().find(|name| coverage.cases(name) == 0) {
            Some(name) => bail!("{name} is required, and no case bears its name"),
            None => Ok(()),
        }
    }
}
