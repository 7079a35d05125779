use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

use crate::{coverage::Coverage, fleet::Fleet, server::SERVERS};

/// The back ends that need no server.
const EMBEDDED: [&str; 2] = ["memory", "sqlite"];

const ALL: &str = "all";

/// Every back end, by the name its tests bear.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.into_iter().chain(SERVERS.iter().map(|server| server.name))
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
        match fleet.missing().find(|(name, _)| self.0.contains(name)) {
            Some((name, missing)) => bail!("{name} is required and missing: {missing}"),
            None => Ok(()),
        }
    }

    /// A back end without a single case has not been tested, whatever its server did.
    pub(crate) fn ensure_covered(&self, coverage: &Coverage) -> Result<()> {
        match self.0.iter().find(|name| coverage.cases(name) == 0) {
            Some(name) => bail!("{name} is required, and no conformance case bears its name"),
            None => Ok(()),
        }
    }
}
