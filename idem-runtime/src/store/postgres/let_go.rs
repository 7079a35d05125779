//! A future that is let go of, where it would do harm when it is dropped.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

/// A future that is let go of, not dropped, where its caller does not wait for its end.
///
/// Beginning a savepoint over Postgres is such a future: dropped half way, sqlx rolls the whole transaction back, and
/// the caller's commit would find nothing to do and succeed. Let go of, it leaves a savepoint that nobody uses.
#[derive(Debug)]
pub(super) struct LetGo<F>(Option<Pin<Box<F>>>);

impl<F> LetGo<F> {
    pub(super) fn of(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future> Future for LetGo<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F> Drop for LetGo<F> {
    fn drop(&mut self) {
        mem::forget(self.0.take());
    }
}
