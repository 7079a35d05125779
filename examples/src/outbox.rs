use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The post office: a file to which every mail that was sent is appended. It knows nothing of keys.
#[derive(Debug)]
pub struct Outbox(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
struct Mail {
    to: String,
    user_id: u64,
    reset_token_id: Uuid,
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
    pub async fn send(&self, to: &str, user_id: u64, reset_token_id: Uuid) -> io::Result<()> {
        tokio::time::sleep(Duration::from_millis(5 + user_id % 16)).await;
        let mut line = serde_json::to_string(&Mail { to: to.to_owned(), user_id, reset_token_id })?;
        line.push('\n');
        // One write in append mode, so that mails of several processes do not mix.
        File::options().create(true).append(true).open(&self.0)?.write_all(line.as_bytes())
    }

    /// How many mails were sent about these users' tokens, repeats included.
    ///
    /// # Errors
    ///
    /// The file cannot be read as an outbox.
    pub fn mails(&self, about: &BTreeSet<(u64, Uuid)>) -> io::Result<u64> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            text => text?,
        };
        let mut mails = 0;
        for line in text.lines() {
            let mail: Mail = serde_json::from_str(line)?;
            mails += u64::from(about.contains(&(mail.user_id, mail.reset_token_id)));
        }
        Ok(mails)
    }
}
