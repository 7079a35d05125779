use std::{future::Future, time::Duration};

use idem_runtime::{Error, ErrorKind, Outcome, with_outcome};
use serde::{Deserialize, Serialize};

use crate::Settled;

/// What a worker answers to a delivery.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The queue is done with it.
    Settled(Settled),
    /// It may go better if the job is delivered again.
    Again {
        /// What went wrong.
        error: String,
        /// When, where the library says so.
        after: Option<Duration>,
        /// Whether the store could not be used.
        stranded: bool,
    },
}

impl Answer {
    /// Runs a job and judges how it went. An error of the job itself may pass, and so may those of the library that
    /// say so. A key under review waits for a person, which takes longer than this run.
    pub async fn of<T>(job: impl Future<Output = anyhow::Result<T>>) -> Self {
        let (answer, outcome) = with_outcome(job).await;
        let error = match (answer, outcome) {
            (Ok(_), Some(Outcome::Replayed)) => return Self::Settled(Settled::Replayed),
            (Ok(_), _) => return Self::Settled(Settled::Executed),
            (Err(error), _) => error,
        };
        match error.downcast_ref::<Error>() {
            Some(Error::NeedsReview { key, .. }) => {
                Self::Settled(Settled::NeedsReview { key: key.to_string(), error: error.to_string() })
            }
            Some(error) if !error.is_retryable() => {
                tracing::warn!(%error, "refused");
                Self::Settled(Settled::Refused)
            }
            Some(error) => {
                let stranded = matches!(error.kind(), ErrorKind::Store | ErrorKind::ServiceGone);
                Self::Again { error: error.to_string(), after: error.retry_after(), stranded }
            }
            None => Self::again(&error),
        }
    }

    /// An answer to what has nothing to do with the library.
    pub(crate) fn again(error: &anyhow::Error) -> Self {
        Self::Again { error: error.to_string(), after: None, stranded: false }
    }
}
