use std::{fs, path::PathBuf};

use anyhow::Context as _;
use clap::Args;

/// What the examples with a queue can be told.
#[derive(Args, Debug)]
pub struct Options {
    /// The deliveries, a JSON object on each line [default: a file that is built in]
    #[arg(long, value_name = "FILE")]
    deliveries: Option<PathBuf>,

    /// How many jobs run at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: u16,

    /// Close with one line of JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// The deliveries' text: the file's, or what is built in.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn deliveries(&self, built_in: &str) -> anyhow::Result<Vec<u8>> {
        match &self.deliveries {
            Some(file) => fs::read(file).with_context(|| format!("cannot read {}", file.display())),
            None => Ok(built_in.into()),
        }
    }
}
