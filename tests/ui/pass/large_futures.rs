//! Futures stay small, whatever their bodies hold, so that calls can nest on a small stack.

#![allow(clippy::large_stack_arrays)]

use idem_runtime::{Error, idempotent};
use sqlx::{Connection, SqliteConnection};

use super::memory;

#[idempotent(key = "large_futures:held:<id>", idem = memory())]
async fn held(id: u8) -> Result<u8, Error> {
    let bytes = [id; 64 * 1024];
    tokio::task::yield_now().await;
    Ok(bytes[usize::from(id)])
}

#[idempotent(key = "large_futures:taken:<id>", idem = memory())]
async fn taken(id: u8, bytes: [u8; 1024]) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    Ok(bytes.len() + usize::from(id))
}

#[idempotent(key = "large_futures:inside:<id>", mode = "transactional", idem = memory())]
async fn inside(id: u8, tx: &mut SqliteConnection) -> Result<u8, Error> {
    let bytes = [id; 64 * 1024];
    tx.ping().await.ok();
    Ok(bytes[usize::from(id)])
}

#[idempotent(key = "large_futures:taken_inside:<id>", mode = "transactional", idem = memory())]
async fn taken_inside(id: u8, bytes: [u8; 1024], tx: &mut SqliteConnection) -> Result<usize, Error> {
    tx.ping().await.ok();
    Ok(bytes.len() + usize::from(id))
}

macro_rules! chain {
    ($($name:ident $key:literal => $next:ident;)*) => {$(
        #[idempotent(key = $key, idem = memory())]
        async fn $name(id: u8) -> Result<u8, Error> {
            let bytes = [id; 4096];
            let next = $next(id).await?;
            Ok(next.max(bytes[7]))
        }
    )*};
}

chain! {
    one "large_futures:one:<id>" => two;
    two "large_futures:two:<id>" => three;
    three "large_futures:three:<id>" => four;
    four "large_futures:four:<id>" => five;
    five "large_futures:five:<id>" => six;
    six "large_futures:six:<id>" => seven;
    seven "large_futures:seven:<id>" => eight;
    eight "large_futures:eight:<id>" => nine;
    nine "large_futures:nine:<id>" => held;
}

#[test]
fn a_future_is_no_larger_than_its_arguments_and_two_kilobytes() {
    assert!(size_of_val(&held(1)) < 2048, "{}", size_of_val(&held(1)));
    assert!(size_of_val(&one(1)) < 2048, "{}", size_of_val(&one(1)));
    let plain = 1024 + 2 * size_of::<u8>();
    assert!(size_of_val(&taken(1, [0; 1024])) < plain + 2048, "{}", size_of_val(&taken(1, [0; 1024])));
}

#[tokio::test]
async fn a_future_in_a_transaction_is_no_larger() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a connection");
    let tx = &mut connection;
    assert!(size_of_val(&inside(1, tx)) < 2048, "{}", size_of_val(&inside(1, tx)));
    // The arguments wait for the claim before the body takes them, and are there twice, as in any async function.
    let plain = 2 * 1024 + 2 * size_of::<u8>();
    let taken = size_of_val(&taken_inside(1, [0; 1024], tx));
    assert!(taken < plain + 1024, "{taken}");
}

#[test]
fn ten_jobs_in_a_row_fit_on_a_small_stack() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(one(3))
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(run).expect("a thread");
    assert_eq!(thread.join().expect("no overflow").expect("a result"), 3);
}
