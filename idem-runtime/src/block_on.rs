//! How synchronous code waits for the engine.

use std::{
    pin::pin,
    sync::{Arc, Condvar, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use tokio::task::unconstrained;

/// Drives a future on this thread, in or out of any runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    // A runtime around this thread rations its task's polls, and renews the ration only when the task has yielded.
    let mut future = pin!(unconstrained(future));
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => signal.wait(),
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
    fn wait(&self) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *raised) {
            raised = self.changed.wait(raised).unwrap_or_else(PoisonError::into_inner);
        }
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
}
