//! How synchronous code waits for the engine.

use std::{
    pin::pin,
    sync::{Arc, Condvar, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use tokio::task::unconstrained;

/// Drives a future on this thread, in or out of any runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Some(output) = block_on_for(Duration::MAX, future.as_mut()) {
            return output;
        }
    }
}

/// The same for so long; `None` if the future took longer.
pub(crate) fn block_on_for<F: Future>(patience: Duration, future: F) -> Option<F::Output> {
    // A runtime around this thread rations its task's polls, and renews the ration only when the task has yielded.
    let mut future = pin!(unconstrained(future));
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    let began = Instant::now();
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return Some(output),
            Poll::Pending => signal.wait(patience.checked_sub(began.elapsed())?),
        }
    }
}

/// Wakes the one thread that waits for it. Not `thread::park`: an executor around this one may need that token.
#[derive(Default)]
struct Signal {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn wait(&self, patience: Duration) {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(raised, patience, |raised| !*raised);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_task_may_wait_more_often_than_its_runtime_rations() {
        for number in 0..1_000 {
            let (answer, question) = oneshot::channel();
            answer.send(number).expect("a receiver");
            assert_eq!(block_on(question), Ok(number));
        }
    }

    #[test]
    fn what_takes_too_long_is_given_up() {
        let (answer, question) = oneshot::channel::<()>();
        assert_eq!(block_on_for(Duration::from_millis(1), question), None);
        drop(answer);
    }
}
