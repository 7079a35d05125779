//! `mut` parameters, and what the body changes.

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

#[derive(Clone, Copy)]
struct Month {
    year: u16,
    month: u8,
}

#[idempotent(key = "mutable_parameters:list:<id>", idem = memory())]
async fn list(id: u8, mut list: Vec<u8>) -> Result<Vec<u8>, Error> {
    list.push(id);
    tokio::task::yield_now().await;
    list.push(id + 1);
    Ok(list)
}

#[idempotent(key = "mutable_parameters:list_sync:<id>", idem = memory())]
fn list_sync(id: u8, mut list: Vec<u8>) -> Result<Vec<u8>, Error> {
    list.push(id);
    Ok(list)
}

/// The key is that of the call, whatever becomes of the parameter.
#[idempotent(key = "mutable_parameters:keyed:<name>", idem = memory())]
async fn keyed(mut name: String) -> Result<String, Error> {
    name.push('!');
    tokio::task::yield_now().await;
    Ok(format!("{name} {}", this_key()))
}

#[idempotent(key = "mutable_parameters:field:<month.year>:<month.month>", idem = memory())]
async fn field(mut month: Month) -> Result<u16, Error> {
    month.year += 1;
    tokio::task::yield_now().await;
    Ok(month.year + u16::from(month.month))
}

#[idempotent(key = "mutable_parameters:reassigned:<id>", idem = memory())]
fn reassigned(mut id: u8, mut lent: &str) -> Result<String, Error> {
    while id > 2 {
        id -= 1;
        lent = &lent[1..];
    }
    Ok(format!("{id} {lent}"))
}

#[idempotent(key = "mutable_parameters:lent:<id>", idem = memory())]
async fn lent(id: u8, out: &mut Vec<u8>, mut other: &mut u8, spare: &mut u8) -> Result<usize, Error> {
    out.push(id);
    tokio::task::yield_now().await;
    *other += 1;
    other = spare;
    *other += 2;
    Ok(out.len())
}

#[tokio::test]
async fn b12_a_mutable_parameter_may_change() {
    assert_eq!(once(async || is_send(list(1, vec![0])).await).await, [0, 1, 2]);
    assert_eq!(once_sync(|| list_sync(1, vec![0])), [0, 1]);
    assert_eq!(once(async || keyed("n".to_owned()).await).await, "n! mutable_parameters:keyed:n");
    assert_eq!(once(async || field(Month { year: 2024, month: 6 }).await).await, 2031);
    assert_eq!(once_sync(|| reassigned(4, "abcd")), "2 cd");
}

#[tokio::test]
async fn b12_what_is_lent_is_changed_by_the_run_alone() {
    let (mut out, mut first, mut second) = (Vec::new(), 0, 0);
    for _ in 0..2 {
        assert_eq!(lent(1, &mut out, &mut first, &mut second).await.expect("a count"), 1);
    }
    assert_eq!((out, first, second), (vec![1], 1, 2));
}
