//! When something is sent again.

use std::{slice, time::Duration};

use sqlx::MySql;

use crate::store::sql::{ATTEMPTS, Fault};

/// How long a write stands back where a row is locked, time after time: most locks are short, and the server itself
/// can only wait for whole seconds.
pub(super) const PAUSES: [Duration; 4] =
    [Duration::from_millis(1), Duration::from_millis(2), Duration::from_millis(5), Duration::from_millis(10)];

/// How often it was sent, and how often it still may.
#[derive(Debug)]
pub(super) struct Retry {
    attempts: usize,
    pauses: slice::Iter<'static, Duration>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, pauses: PAUSES.iter() }
    }
}

impl Retry {
    /// Whether to send it again, at once where it collided, a moment later where a row was locked.
    pub(super) async fn after(&mut self, fault: Option<Fault>) -> bool {
        self.attempts += 1;
        match fault {
            Some(Fault::Collision) if self.attempts <= ATTEMPTS => tokio::task::yield_now().await,
            Some(Fault::Locked) => match self.pauses.next() {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return false,
            },
            _ => return false,
        }
        true
    }
}

pub(super) fn fault<T>(result: &Result<T, sqlx::Error>) -> Option<Fault> {
    result.as_ref().err().map(Fault::of::<MySql>)
}
