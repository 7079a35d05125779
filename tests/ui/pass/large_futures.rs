//! Futures stay small, whatever their bodies hold: each job has a plain twin to be compared with.

#![allow(clippy::large_stack_arrays, clippy::large_futures, clippy::needless_range_loop)]

use idem_runtime::{Error, Probe, idempotent};
use sqlx::{Connection, SqliteConnection};

use super::memory;

/// What a job's future may have on top of the plain one.
const MORE: usize = 2048;

macro_rules! twins {
    ($name:ident, $key:literal $(, $tx:ident)?, ($($params:tt)*) $body:block) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            pub(super) async fn plain($($params)*) -> Result<usize, Error> $body

            #[idempotent(key = $key, $(mode = "transactional", tx = $tx,)? idem = memory())]
            pub(super) async fn job($($params)*) -> Result<usize, Error> $body
        }
    };
}

twins!(nothing, "large_futures:nothing:<id>", (id: u8) {
    tokio::task::yield_now().await;
    Ok(id.into())
});
twins!(held, "large_futures:held:<id>", (id: u8) {
    let bytes = [id; 64 * 1024];
    tokio::task::yield_now().await;
    Ok(bytes[usize::from(id)].into())
});
twins!(held_often, "large_futures:held_often:<id>", (id: u8) {
    let mut bytes = [id; 64 * 1024];
    for at in 0..4 {
        tokio::task::yield_now().await;
        bytes[at] += 1;
    }
    tokio::task::yield_now().await;
    Ok(bytes.iter().map(|byte| usize::from(*byte)).sum())
});
twins!(taken, "large_futures:taken:<id>", (id: u8, bytes: [u8; 1024]) {
    tokio::task::yield_now().await;
    Ok(bytes.len() + usize::from(id))
});
twins!(awaits, "large_futures:awaits:<id>", (id: u8) {
    let first = held::plain(id).await?;
    let second = held::plain(id + 1).await?;
    Ok(first + second)
});
twins!(inside, "large_futures:inside:<id>", tx, (id: u8, tx: &mut SqliteConnection) {
    let bytes = [id; 64 * 1024];
    tx.ping().await.ok();
    Ok(bytes[usize::from(id)].into())
});
twins!(taken_inside, "large_futures:taken_inside:<id>", tx, (id: u8, bytes: [u8; 1024], tx: &mut SqliteConnection) {
    tx.ping().await.ok();
    Ok(bytes.len() + usize::from(id))
});

async fn finds(_: &u8) -> Probe<usize> {
    let bytes = [1_u8; 64 * 1024];
    tokio::task::yield_now().await;
    Probe::Happened(bytes[usize::from(bytes[0])].into())
}

mod asks {
    use super::*;

    pub(super) async fn plain(id: u8) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(id.into())
    }

    #[idempotent(key = "large_futures:asks:<id>", on_stale = probe(finds), idem = memory())]
    pub(super) async fn job(id: u8) -> Result<usize, Error> {
        let bytes = [id; 64 * 1024];
        tokio::task::yield_now().await;
        Ok(bytes[usize::from(id)].into())
    }
}

/// Both sizes, compared.
macro_rules! compare {
    ($name:ident($($args:expr),*)) => {{
        let plain = size_of_val(&$name::plain($($args),*));
        let job = size_of_val(&$name::job($($args),*));
        assert!(job <= plain + MORE, "{}: {plain} plain, {job} as a job", stringify!($name));
        (plain, job)
    }};
}

#[test]
fn b14_a_future_has_at_most_two_kilobytes_on_top_of_the_plain_one() {
    let (_, least) = compare!(nothing(1));
    let (plain, job) = compare!(held(1));
    assert!(plain > 64 * 1024, "the plain one holds the array: {plain}");
    assert_eq!(job, least, "and the job's does not: its body is stored elsewhere");
    assert_eq!(compare!(held_often(1)).1, least);
    assert_eq!(compare!(awaits(1)).1, least);
    compare!(taken(1, [0; 1024]));
    compare!(asks(1));
}

#[tokio::test]
async fn b14_a_future_in_a_transaction_has_at_most_two_kilobytes_on_top_of_the_plain_one() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a connection");
    let tx = &mut connection;
    let (plain, job) = compare!(inside(1, &mut *tx));
    assert!(plain > 64 * 1024, "the plain one holds the array: {plain}");
    assert!(job < MORE, "{job}");
    // The arguments wait for the claim before the body takes them, and are there twice, as in any async function.
    compare!(taken_inside(1, [0; 1024], &mut *tx));
}
