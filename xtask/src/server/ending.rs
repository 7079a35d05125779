use std::str::FromStr;

use anyhow::{Error, bail};

/// How a server ends that is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it does when its machine is shut down.
    Graceful,
    /// Without a word to anybody, where the server knows such a thing.
    Immediate,
    /// All its processes are killed.
    Killed,
}

impl FromStr for Ending {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        Ok(match word {
            "graceful" => Ending::Graceful,
            "immediate" => Ending::Immediate,
            "killed" => Ending::Killed,
            other => bail!("no server ends {other:?}"),
        })
    }
}
