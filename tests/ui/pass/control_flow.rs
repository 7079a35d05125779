//! `?`, `return`, branches, closures and items inside a body.

#![allow(clippy::needless_return)]

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Idem(#[from] Error),
    #[error(transparent)]
    Number(#[from] std::num::ParseIntError),
    #[error("too small")]
    Small,
}

#[idempotent(key = "control_flow:question:<text>", idem = memory())]
async fn question(text: &str) -> Result<u32, Failure> {
    let number: u32 = text.parse()?;
    tokio::task::yield_now().await;
    if number == 0 {
        return Err(Failure::Small);
    }
    let half = |n: u32| -> Result<u32, Failure> { Ok(n / 2) };
    half(number)
}

#[idempotent(key = "control_flow:early:<n>", idem = memory())]
async fn early(n: u32) -> Result<u32, Failure> {
    return Ok(n);
}

#[idempotent(key = "control_flow:items:<n>", idem = memory())]
async fn items(n: u32) -> Result<u32, Failure> {
    use std::collections::BTreeSet;
    const MORE: u32 = 3;
    fn add(a: u32, b: u32) -> u32 {
        a + b
    }
    macro_rules! twice {
        ($e:expr) => {
            $e * 2
        };
    }
    let set = BTreeSet::from([n, MORE]);
    Ok(twice!(set.into_iter().fold(0, add)))
}

#[idempotent(key = "control_flow:single:<n>", idem = memory())]
async fn single(n: u32) -> Result<u32, Failure> {
    Ok(n)
}

#[idempotent(key = "control_flow:branches:<n>", idem = memory())]
fn branches(n: u32) -> Result<u32, Failure> {
    if n > 1 { Ok(n) } else { Err(Failure::Small) }
}

#[idempotent(key = "control_flow:unit:<n>", idem = memory())]
fn unit(n: u32) -> Result<(), Failure> {
    if n == 0 {
        return Err(Failure::Small);
    }
    Ok(())
}

#[tokio::test]
async fn bodies_flow_as_they_do_without_the_attribute() {
    assert_eq!(once(async || question("12").await).await, 6);
    assert!(matches!(question("x").await, Err(Failure::Number(_))));
    assert!(matches!(question("0").await, Err(Failure::Small)));
    assert_eq!(once(async || early(2).await).await, 2);
    assert_eq!(once(async || items(4).await).await, 14);
    assert_eq!(once(async || single(4).await).await, 4);
    assert_eq!(once_sync(|| branches(4)), 4);
    once_sync(|| unit(4));
}
