//! `for<'a>`: parameters that serve every lifetime.

use std::{future::Future, pin::Pin};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "higher_ranked:picked:<id>", idem = memory())]
async fn picked(id: u8, pick: impl for<'a> Fn(&'a str) -> &'a str + Send) -> Result<String, Error> {
    let _ = id;
    tokio::task::yield_now().await;
    Ok(pick("abc").to_owned())
}

#[idempotent(key = "higher_ranked:bounded:<id>", idem = memory())]
async fn bounded<F>(id: u8, pick: F) -> Result<usize, Error>
where
    F: for<'a, 'b> Fn(&'a [u8], &'b [u8]) -> &'a [u8],
{
    let local = vec![id; 3];
    let other = vec![id];
    tokio::task::yield_now().await;
    Ok(pick(&local, &other).len())
}

#[idempotent(key = "higher_ranked:object:<id>", idem = memory())]
fn object(id: u8, pick: &dyn for<'a> Fn(&'a str) -> &'a str) -> Result<String, Error> {
    Ok(pick(&id.to_string()).to_owned())
}

type Step = for<'a> fn(&'a mut Vec<u8>) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>>;

#[idempotent(key = "higher_ranked:pointer:<id>", idem = memory())]
async fn pointer(id: u8, step: Step) -> Result<usize, Error> {
    let mut list = vec![id];
    let first = step(&mut list).await;
    let second = step(&mut list).await;
    Ok(first + second)
}

fn grow(list: &mut Vec<u8>) -> Pin<Box<dyn Future<Output = usize> + Send + '_>> {
    Box::pin(async move {
        tokio::task::yield_now().await;
        list.push(0);
        list.len()
    })
}

trait Visit {
    fn visit(&mut self, text: &str);
}

#[idempotent(key = "higher_ranked:trait:<id>", idem = memory())]
async fn visited<V>(id: u8, mut visitor: V) -> Result<V, Error>
where
    for<'a> V: Visit + serde::Serialize + serde::Deserialize<'a> + Send,
{
    tokio::task::yield_now().await;
    visitor.visit(&id.to_string());
    Ok(visitor)
}

impl Visit for Vec<String> {
    fn visit(&mut self, text: &str) {
        self.push(text.to_owned());
    }
}

#[tokio::test]
async fn b7_higher_ranked_parameters_serve_every_lifetime() {
    assert_eq!(once(async || is_send(picked(1, |text| &text[1..])).await).await, "bc");
    assert_eq!(once(async || bounded(1, |left, _| left).await).await, 3);
    assert_eq!(once_sync(|| object(12, &|text| &text[1..])), "2");
    assert_eq!(once(async || is_send(pointer(1, grow)).await).await, 5);
    assert_eq!(once(async || is_send(visited(1, Vec::new())).await).await, ["1"]);
}
