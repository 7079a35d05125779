//! Jobs that call jobs, on small stacks.

#![allow(clippy::large_stack_arrays, clippy::large_stack_frames)]

use std::thread;

use async_trait::async_trait;
use idem_runtime::{Error, Outcome, idempotent, with_outcome};

use super::{is_send, memory};

const KB: usize = 1024;

#[idempotent(key = "deep_calls:held:<id>", idem = memory())]
async fn held(id: u8) -> Result<u8, Error> {
    let bytes = [id; 64 * KB];
    tokio::task::yield_now().await;
    Ok(bytes[usize::from(id)])
}

macro_rules! chain {
    ($($name:ident $key:literal => $next:ident;)*) => {$(
        #[idempotent(key = $key, idem = memory())]
        async fn $name(id: u8) -> Result<u8, Error> {
            let bytes = [id; 4 * KB];
            let next = $next(id).await?;
            Ok(next.max(bytes[7]))
        }
    )*};
}

chain! {
    one "deep_calls:one:<id>" => two;
    two "deep_calls:two:<id>" => three;
    three "deep_calls:three:<id>" => four;
    four "deep_calls:four:<id>" => five;
    five "deep_calls:five:<id>" => six;
    six "deep_calls:six:<id>" => seven;
    seven "deep_calls:seven:<id>" => eight;
    eight "deep_calls:eight:<id>" => nine;
    nine "deep_calls:nine:<id>" => held;
}

macro_rules! chain_sync {
    ($($name:ident $key:literal => $next:expr;)*) => {$(
        #[idempotent(key = $key, idem = memory())]
        fn $name(id: u8) -> Result<u8, Error> {
            let bytes = [id; 4 * KB];
            let next: fn(u8) -> Result<u8, Error> = $next;
            Ok(next(id)?.max(bytes[7]))
        }
    )*};
}

chain_sync! {
    one_sync "deep_calls:one_sync:<id>" => two_sync;
    two_sync "deep_calls:two_sync:<id>" => three_sync;
    three_sync "deep_calls:three_sync:<id>" => four_sync;
    four_sync "deep_calls:four_sync:<id>" => five_sync;
    five_sync "deep_calls:five_sync:<id>" => six_sync;
    six_sync "deep_calls:six_sync:<id>" => seven_sync;
    seven_sync "deep_calls:seven_sync:<id>" => eight_sync;
    eight_sync "deep_calls:eight_sync:<id>" => nine_sync;
    nine_sync "deep_calls:nine_sync:<id>" => ten_sync;
    ten_sync "deep_calls:ten_sync:<id>" => Ok;
}

#[async_trait]
trait Work: Send + Sync {
    async fn down(&self, n: u32) -> Result<u32, Error>;
}

#[async_trait]
impl Work for () {
    #[idempotent(key = "deep_calls:method:<n>", idem = memory())]
    async fn down(&self, n: u32) -> Result<u32, Error> {
        if n == 0 { Ok(0) } else { Ok(self.down(n - 1).await? + 1) }
    }
}

#[idempotent(key = "deep_calls:down:<n>", idem = memory())]
async fn down(n: u32) -> Result<u32, Error> {
    if n == 0 {
        return Ok(0);
    }
    Ok(Box::pin(down(n - 1)).await? + 1)
}

/// Runs on a thread with a stack of this size.
fn on_a_stack<T: Send + 'static>(
    size: usize,
    run: impl AsyncFnOnce() -> Result<T, Error> + Send + 'static,
) -> T {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(run())
    };
    let thread = thread::Builder::new().stack_size(size).spawn(run).expect("a thread");
    thread.join().expect("no overflow").expect("a result")
}

#[test]
fn b14_ten_jobs_in_a_row_fit_on_a_small_stack() {
    for (id, size) in [(1, 512 * KB), (2, 2048 * KB)] {
        assert_eq!(on_a_stack(size, async move || is_send(one(id)).await), id);
        let again = on_a_stack(size, async move || Ok(with_outcome(five(id)).await.1));
        assert_eq!(again, Some(Outcome::Replayed), "it ran inside");
    }
}

#[test]
fn b14_ten_sync_jobs_in_a_row_fit_on_a_small_stack() {
    for (id, size) in [(1, 512 * KB), (2, 2048 * KB)] {
        assert_eq!(on_a_stack(size, async move || one_sync(id)), id);
    }
}

#[test]
fn b14_a_job_can_call_itself_500_deep() {
    assert_eq!(on_a_stack(2048 * KB, async || is_send(down(500)).await), 500);
    assert_eq!(on_a_stack(512 * KB, async || Ok(with_outcome(down(499)).await.1)), Some(Outcome::Replayed));
}

#[test]
fn b14_a_method_under_async_trait_can_call_itself_500_deep() {
    assert_eq!(on_a_stack(2048 * KB, async || is_send(().down(500)).await), 500);
}
