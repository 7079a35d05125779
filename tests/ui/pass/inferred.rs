//! Bodies whose types follow from the declared result alone.

use std::collections::{BTreeMap, BTreeSet};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync};

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Idem(#[from] Error),
    #[error(transparent)]
    Number(#[from] std::num::ParseIntError),
}

#[idempotent(key = "inferred:collected:<text>", idem = memory())]
async fn collected(text: &str) -> Result<Vec<u8>, Failure> {
    tokio::task::yield_now().await;
    text.split(',').map(|number| Ok(number.parse()?)).collect()
}

#[idempotent(key = "inferred:collected_sync:<text>", idem = memory())]
fn collected_sync(text: &str) -> Result<Vec<u8>, Failure> {
    text.split(',').map(|number| Ok(number.parse()?)).collect()
}

#[idempotent(key = "inferred:set:<text>", idem = memory())]
async fn set(text: &str) -> Result<BTreeSet<char>, Failure> {
    Ok(text.chars().collect())
}

#[idempotent(key = "inferred:map:<text>", idem = memory())]
fn map(text: &str) -> Result<BTreeMap<String, usize>, Failure> {
    Ok(text.split(',').map(|word| (word.into(), word.len())).collect())
}

#[idempotent(key = "inferred:parsed:<text>", idem = memory())]
async fn parsed(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(Into::into)
}

#[idempotent(key = "inferred:parsed_sync:<text>", idem = memory())]
fn parsed_sync(text: &str) -> Result<u64, Failure> {
    Ok(text.parse()?)
}

#[idempotent(key = "inferred:widened:<n>", idem = memory())]
async fn widened(n: u8) -> Result<u64, Failure> {
    Ok(n.into())
}

#[idempotent(key = "inferred:default:<n>", idem = memory())]
async fn default(n: u8) -> Result<(u8, Option<String>), Failure> {
    if n == 0 {
        return Ok(Default::default());
    }
    Ok((n, None))
}

#[idempotent(key = "inferred:summed:<n>", idem = memory())]
fn summed(n: u8) -> Result<u64, Failure> {
    Ok((1..=u64::from(n)).sum())
}

#[idempotent(key = "inferred:empty:<n>", idem = memory())]
async fn empty(n: u8) -> Result<Vec<String>, Failure> {
    let mut list = Vec::new();
    for _ in 0..n {
        list.push(String::new());
    }
    if list.len() > 2 { Ok(vec![]) } else { Ok(list) }
}

#[tokio::test]
async fn b1_what_is_declared_is_inferred() {
    assert_eq!(once(async || is_send(collected("1,2")).await).await, [1, 2]);
    assert!(matches!(collected("1,x").await, Err(Failure::Number(_))));
    assert_eq!(once(async || set("abba").await).await, BTreeSet::from(['a', 'b']));
    assert_eq!(once(async || parsed("7").await).await, 7);
    assert!(matches!(parsed("x").await, Err(Failure::Number(_))));
    assert_eq!(once(async || widened(7).await).await, 7);
    assert_eq!(once(async || default(0).await).await, (0, None));
    assert_eq!(once(async || empty(2).await).await, ["", ""]);
    assert_eq!(once(async || empty(3).await).await, [""; 0]);
}

#[test]
fn b1_what_is_declared_is_inferred_in_a_sync_job() {
    assert_eq!(once_sync(|| collected_sync("1,2")), [1, 2]);
    assert!(matches!(collected_sync("1,x"), Err(Failure::Number(_))));
    assert_eq!(once_sync(|| map("a,bc")), BTreeMap::from([("a".to_owned(), 1), ("bc".to_owned(), 2)]));
    assert_eq!(once_sync(|| parsed_sync("7")), 7);
    assert_eq!(once_sync(|| summed(4)), 10);
}
