//! Synchronous jobs work wherever they are called: in a runtime, out of any, on the only thread there is.

use std::{
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use idem_runtime::{Error, ErrorKind, current, idempotent};
use tokio::{
    runtime::{Builder, Handle},
    task::{LocalSet, spawn_blocking},
};

use super::{
    call::{executed, executed_sync, replayed, replayed_sync},
    site::{Site, Worker},
};

#[idempotent(key = "c16:<id>", idem = w.idem)]
fn job(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

#[idempotent(key = "c16-async:<id>", idem = w.idem)]
async fn async_job(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect(id);
    Ok(id.to_owned())
}

#[idempotent(key = "c16-waiting:<id>", on_busy = "wait", idem = w.idem)]
fn waiting_job(w: &Worker, id: &str, takes: Duration) -> Result<String, Error> {
    w.effect(id);
    thread::sleep(takes);
    Ok(id.to_owned())
}

/// Runs and replays a job here.
fn both(w: &Worker, id: &str) {
    assert_eq!(executed_sync(|| job(w, id)), id);
    assert_eq!(replayed_sync(|| job(w, id)), id);
}

/// A deed on a thread of its own, which must end in time.
fn in_time(deed: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        deed();
        tell.send(()).expect("somebody who waits");
    });
    let ended = told.recv_timeout(Duration::from_mins(1));
    assert!(ended.is_ok() || thread.is_finished(), "it hangs");
    thread.join().expect("no panic");
}

pub(super) async fn c16_on_a_plain_thread(site: &Site) {
    let w = site.worker().await;
    in_time(move || both(&w, "plain"));
}

pub(super) async fn c16_on_a_worker_of_a_runtime(site: &Site) {
    let w = site.worker().await;
    both(&w, "here");
    tokio::spawn(async move { both(&w, "task") }).await.expect("no panic");
}

pub(super) async fn c16_on_the_only_thread_of_a_runtime(site: &Site) {
    let w = site.worker().await;
    in_time(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            both(&w, "current-thread");
            assert_eq!(executed(async_job(&w, "current-thread-async")).await, "current-thread-async");
            let set = LocalSet::new();
            let local = w.clone();
            set.run_until(
                async move { tokio::task::spawn_local(async move { both(&local, "local") }).await },
            )
            .await
            .expect("no panic");
        });
    });
}

/// A runtime without a clock and without I/O, as some applications have one.
pub(super) async fn c16_in_a_runtime_without_drivers(site: &Site) {
    let w = site.worker().await;
    in_time(move || {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            both(&w, "bare");
            assert_eq!(executed(async_job(&w, "bare-async")).await, "bare-async");
        });
    });
}

pub(super) async fn c16_on_the_only_blocking_thread(site: &Site) {
    let w = site.worker().await;
    in_time(move || {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            let first = w.clone();
            spawn_blocking(move || both(&first, "blocking")).await.expect("no panic");
            let calls: Vec<_> = (0..8)
                .map(|n| {
                    let w = w.clone();
                    spawn_blocking(move || both(&w, &format!("blocking-{n}")))
                })
                .collect();
            for call in calls {
                call.await.expect("no panic");
            }
        });
    });
}

pub(super) async fn c16_in_place_of_a_worker(site: &Site) {
    let w = site.worker().await;
    tokio::task::block_in_place(|| both(&w, "in-place"));
    let handle = Handle::current();
    in_time(move || {
        let _entered = handle.enter();
        both(&w, "entered");
        handle.block_on(async { both(&w, "handle") });
    });
}

/// Parks its thread until it is woken, and takes every token for a wake-up, as simple executors do.
fn simple_block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

pub(super) async fn c16_under_another_executor(site: &Site) {
    let w = site.worker().await;
    in_time(move || {
        simple_block_on(async {
            both(&w, "simple");
            assert_eq!(executed(async_job(&w, "simple-async")).await, "simple-async");
            assert_eq!(replayed(async_job(&w, "simple-async")).await, "simple-async");
        });
        for n in 0..20 {
            let (tell, told) = tokio::sync::oneshot::channel();
            let id = format!("woken-{n}");
            // It has asked to be woken, and is, before a job of ours waits on the same thread.
            let wakes = async {
                thread::spawn(move || tell.send(n)).join().expect("no panic").expect("a receiver");
                executed_sync(|| job(&w, &id));
            };
            let (woken, ()) = simple_block_on(async { tokio::join!(told, wakes) });
            assert_eq!(woken, Ok(n), "its wake-up is not lost");
        }
    });
}

#[idempotent(key = "c16-outer:<id>", idem = w.idem)]
fn outer(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect("outer");
    let key = current().key().to_string();
    both(w, &format!("inner-{id}"));
    assert_eq!(current().key().to_string(), key, "the outer execution goes on");
    Ok(id.to_owned())
}

#[idempotent(key = "c16-async-outer:<id>", idem = w.idem)]
async fn async_outer(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect("outer");
    both(w, &format!("inner-{id}"));
    executed(async_job(w, &format!("async-inner-{id}"))).await;
    Ok(id.to_owned())
}

#[idempotent(key = "c16-again:<id>", idem = w.idem)]
fn again(w: &Worker, id: &str) -> Result<String, Error> {
    w.effect("again");
    assert_eq!(again(w, id).expect_err("itself").kind(), ErrorKind::Reentered);
    Ok(id.to_owned())
}

pub(super) async fn c16_inside_another_job(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed_sync(|| outer(&w, "x")), "x");
    assert_eq!(executed(async_outer(&w, "y")).await, "y");
    assert_eq!(executed_sync(|| again(&w, "z")), "z");
    assert_eq!((site.effects("outer"), site.effects("again")), (2, 1));
    assert_eq!((site.effects("inner-x"), site.effects("inner-y")), (1, 1));
}

/// Calls a job when it goes.
struct Farewell(Worker, &'static str);

impl Drop for Farewell {
    fn drop(&mut self) {
        both(&self.0, self.1);
    }
}

pub(super) async fn c16_in_a_drop(site: &Site) {
    let w = site.worker().await;
    drop(Farewell(w.clone(), "drop"));
    let farewell = Farewell(w.clone(), "drop-in-task");
    tokio::spawn(async move { drop(farewell) }).await.expect("no panic");

    // While its thread unwinds, and while its runtime goes.
    let farewell = Farewell(w.clone(), "drop-in-panic");
    let panicked = thread::spawn(move || {
        let _farewell = farewell;
        panic!("on purpose");
    });
    panicked.join().expect_err("a panic");
    let farewell = Farewell(w, "drop-in-shutdown");
    in_time(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        runtime.spawn(async move {
            let _farewell = farewell;
            std::future::pending::<()>().await;
        });
        runtime.shutdown_timeout(Duration::from_secs(20));
    });
    for id in ["drop", "drop-in-task", "drop-in-panic", "drop-in-shutdown"] {
        assert_eq!(site.effects(id), 1, "{id}");
    }
}

#[idempotent(key = "c16-async-waiting:<id>", on_busy = "wait", idem = w.idem)]
async fn waiting_async_job(w: &Worker, id: &str, takes: Duration) -> Result<String, Error> {
    w.effect(id);
    thread::sleep(takes);
    Ok(id.to_owned())
}

/// The clock that a waiting call needs is ours, not its executor's.
pub(super) async fn c16_waiting_under_another_executor(site: &Site) {
    let w = site.worker().await;
    in_time(move || {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let call = waiting_async_job(&w, "waits", Duration::from_millis(50));
                    assert_eq!(simple_block_on(call).expect("a value"), "waits");
                });
            }
        });
        assert_eq!(w.effects("waits"), 1);
    });
}

pub(super) async fn c16_on_scoped_threads(site: &Site) {
    let w = site.worker().await;
    thread::scope(|scope| {
        for n in 0..8 {
            let w = &w;
            scope.spawn(move || both(w, &format!("scoped-{n}")));
        }
    });
    // All at one key: one runs, the others wait for it.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| waiting_job(&w, "waits", Duration::from_millis(50)).expect("a value"));
        }
    });
    assert_eq!(site.effects("waits"), 1);
}

/// More often than a runtime lets one task go on without a rest.
pub(super) async fn c16_many_times_in_one_task(site: &Site) {
    let w = site.worker().await;
    tokio::spawn(async move {
        for _ in 0..300 {
            job(&w, "often").expect("a value");
        }
    })
    .await
    .expect("no panic");
    assert_eq!(site.effects("often"), 1);
}
