//! Arguments that can be neither cloned nor shown, and are moved once.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use idem_runtime::{Error, idempotent};
use tokio::sync::oneshot;

use super::{is_send, memory, once, once_sync};

/// Counts its drops.
struct Token(Arc<AtomicU8>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[idempotent(key = "moved_parameters:used:<id>", idem = memory())]
async fn used(id: u8, token: Token) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    let inner = token;
    Ok(inner.0.load(Ordering::SeqCst) + id)
}

#[idempotent(key = "moved_parameters:unused:<id>", idem = memory())]
async fn unused(id: u8, _token: Token) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(id)
}

#[idempotent(key = "moved_parameters:sync:<id>", idem = memory())]
fn sync(id: u8, token: Token) -> Result<u8, Error> {
    drop(token);
    Ok(id)
}

#[idempotent(key = "moved_parameters:sender:<id>", idem = memory())]
async fn sender(id: u8, answer: oneshot::Sender<u8>) -> Result<(), Error> {
    tokio::task::yield_now().await;
    let _ = answer.send(id);
    Ok(())
}

#[tokio::test]
async fn b12_an_argument_is_moved_once() {
    let drops = Arc::new(AtomicU8::new(0));
    let token = || Token(Arc::clone(&drops));
    assert_eq!(once(async || is_send(used(1, token())).await).await, 1);
    assert_eq!(drops.load(Ordering::SeqCst), 2, "one for each call");
    assert_eq!(once(async || is_send(unused(1, token())).await).await, 1);
    assert_eq!(drops.load(Ordering::SeqCst), 4);
    assert_eq!(once_sync(|| sync(1, token())), 1);
    assert_eq!(drops.load(Ordering::SeqCst), 6);
    drop(used(9, token()));
    assert_eq!(drops.load(Ordering::SeqCst), 7, "with the future that was never awaited");
}

#[tokio::test]
async fn b12_a_replay_drops_what_it_was_given() {
    let (first, second) = (oneshot::channel(), oneshot::channel());
    sender(3, first.0).await.expect("a first run");
    sender(3, second.0).await.expect("a replay");
    assert_eq!(first.1.await, Ok(3));
    assert!(second.1.await.is_err(), "the body did not run, so nothing was sent");
}
