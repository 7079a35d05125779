//! Labelled blocks and loops.

#![allow(clippy::never_loop)]

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

#[idempotent(key = "labels:async:<n>", idem = memory())]
async fn found(n: u32) -> Result<u32, Error> {
    let found = 'outer: loop {
        for i in 0.. {
            if i * i >= n {
                break 'outer i;
            }
            tokio::task::yield_now().await;
        }
    };
    let doubled = 'block: {
        if found > 100 {
            break 'block 0;
        }
        found * 2
    };
    Ok(doubled)
}

#[idempotent(key = "labels:tail:<n>", idem = memory())]
async fn tail(n: u32) -> Result<u32, Error> {
    'found: {
        for i in 0..n {
            if i > 2 {
                break 'found Ok(i);
            }
        }
        Ok(n)
    }
}

#[idempotent(key = "labels:tail_sync:<n>", idem = memory())]
fn tail_sync(n: u32) -> Result<u32, Error> {
    let mut sum = 0;
    'rows: loop {
        for i in 0..n {
            if i == 2 {
                continue 'rows;
            }
            sum += 1;
            if sum > 5 {
                break 'rows Ok(sum);
            }
        }
        return Ok(0);
    }
}

#[idempotent(key = "labels:closure:<n>", idem = memory())]
async fn closure(n: u32) -> Result<u32, Error> {
    let first = |limit: u32| 'inner: {
        for i in limit.. {
            if i % 7 == 0 {
                break 'inner i;
            }
        }
        0
    };
    let later = async {
        'inner: loop {
            tokio::task::yield_now().await;
            break 'inner first(n);
        }
    };
    Ok(later.await)
}

#[tokio::test]
async fn labels_lead_where_they_led() {
    assert_eq!(once(async || found(10).await).await, 8);
    assert_eq!(once(async || found(90_000).await).await, 0);
    assert_eq!(once(async || tail(9).await).await, 3);
    assert_eq!(once(async || tail(2).await).await, 2);
    assert_eq!(once_sync(|| tail_sync(9)), 6);
    assert_eq!(once_sync(|| tail_sync(1)), 0);
    assert_eq!(once(async || closure(8).await).await, 14);
}
