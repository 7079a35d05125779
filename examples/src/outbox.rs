use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The post office: a file to which every mail that was sent is appended. It knows nothing of keys.
#[derive(Debug)]
pub struct Outbox(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
struct Mail {
    to: String,
    about: String,
}

impl Outbox {
    /// The outbox in a file, which the first mail creates.
    #[must_use]
    pub fn at(file: impl AsRef<Path>) -> Self {
        Self(file.as_ref().to_owned())
    }

    /// Sends a mail, which takes its time.
    ///
    /// # Errors
    ///
    /// The mail was not sent.
    pub async fn send(&self, to: &str, about: &str) -> io::Result<()> {
        let letters = to.bytes().chain(about.bytes()).map(u64::from);
        tokio::time::sleep(Duration::from_millis(5 + letters.sum::<u64>() % 16)).await;
        let mut line = serde_json::to_string(&Mail { to: to.to_owned(), about: about.to_owned() })?;
        line.push('\n');
        // One write in append mode, so that mails of several processes do not mix.
        File::options().create(true).append(true).open(&self.0)?.write_all(line.as_bytes())
    }

    /// How many mails were sent about these things, repeats included.
    ///
    /// # Errors
    ///
    /// The file cannot be read as an outbox.
    pub fn mails(&self, about: &BTreeSet<String>) -> io::Result<u64> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            text => text?,
        };
        let mut mails = 0;
        for line in text.lines() {
            let mail: Mail = serde_json::from_str(line)?;
            mails += u64::from(about.contains(&mail.about));
        }
        Ok(mails)
    }
}
