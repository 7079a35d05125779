//! Jobs that call each other.

use std::{future::Future, pin::Pin};

use idem_runtime::{Error, Outcome, idempotent, with_outcome, with_outcome_sync};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "mutual_recursion:even:<n>", idem = memory())]
async fn even(n: u32) -> Result<bool, Error> {
    tokio::task::yield_now().await;
    if n == 0 { Ok(true) } else { odd(n - 1).await }
}

#[idempotent(key = "mutual_recursion:odd:<n>", idem = memory())]
fn odd(n: u32) -> Pin<Box<dyn Future<Output = Result<bool, Error>> + Send>> {
    if n == 0 {
        return Box::pin(async { Ok(false) });
    }
    Box::pin(even(n - 1))
}

#[idempotent(key = "mutual_recursion:even_sync:<n>", idem = memory())]
fn even_sync(n: u32) -> Result<bool, Error> {
    if n == 0 { Ok(true) } else { odd_sync(n - 1) }
}

#[idempotent(key = "mutual_recursion:odd_sync:<n>", idem = memory())]
fn odd_sync(n: u32) -> Result<bool, Error> {
    if n == 0 { Ok(false) } else { even_sync(n - 1) }
}

/// By way of a plain function.
#[idempotent(key = "mutual_recursion:by_plain:<n>", idem = memory())]
async fn by_plain(n: u32) -> Result<u32, Error> {
    if n == 0 { Ok(0) } else { plain(n).await }
}

async fn plain(n: u32) -> Result<u32, Error> {
    Ok(Box::pin(by_plain(n - 1)).await? + 1)
}

#[tokio::test]
async fn b2_jobs_that_call_each_other_go_through_their_keys() {
    assert!(once(async || is_send(even(10)).await).await);
    assert_eq!(with_outcome(odd(5)).await.1, Some(Outcome::Replayed), "it ran inside");
    assert_eq!(with_outcome(even(4)).await.1, Some(Outcome::Replayed), "it ran inside");
    assert!(once_sync(|| even_sync(10)));
    assert_eq!(with_outcome_sync(|| odd_sync(5)).1, Some(Outcome::Replayed), "it ran inside");
    assert_eq!(once(async || is_send(by_plain(5)).await).await, 5);
}
