//! Functions that box their future by hand.

use std::{future::Future, pin::Pin};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, this_key};

#[idempotent(key = "boxed_futures:one:<id>", idem = memory())]
fn boxed(id: u8) -> Pin<Box<dyn Future<Output = Result<String, Error>> + Send>> {
    if id == 0 {
        return Box::pin(std::future::ready(Ok("early".to_owned())));
    }
    Box::pin(async move {
        tokio::task::yield_now().await;
        Ok(this_key())
    })
}

#[idempotent(key = "boxed_futures:borrowing:<name>", idem = memory())]
fn borrowing<'a>(name: &'a str) -> Pin<Box<dyn Future<Output = anyhow::Result<usize>> + Send + 'a>> {
    Box::pin(async move { Ok(name.len()) })
}

#[idempotent(key = "boxed_futures:elided:<name>", idem = memory())]
fn elided(name: &str) -> Pin<Box<dyn Future<Output = anyhow::Result<usize>> + Send + '_>> {
    let length = name.len();
    Box::pin(async move { Ok(length + name.len()) })
}

#[idempotent(key = "boxed_futures:local:<id>", idem = memory())]
fn local(id: u8) -> Pin<Box<dyn Future<Output = Result<u8, Error>>>> {
    let shared = std::rc::Rc::new(id);
    Box::pin(async move {
        tokio::task::yield_now().await;
        Ok(*shared)
    })
}

#[idempotent(key = "boxed_futures:failing:<text>", idem = memory())]
fn failing(text: &'static str) -> core::pin::Pin<Box<dyn Future<Output = anyhow::Result<u8>> + Send>> {
    Box::pin(async move {
        let number: u8 = text.parse()?;
        Ok(number)
    })
}

struct Service {
    tenant: String,
}

impl Service {
    #[idempotent(key = "boxed_futures:method:<self.tenant>", idem = memory())]
    fn method(&mut self) -> Pin<Box<dyn Future<Output = Result<String, Error>> + Send + '_>> {
        self.tenant.push('!');
        Box::pin(async { Ok(format!("{} {}", self.tenant, this_key())) })
    }
}

#[tokio::test]
async fn a_boxed_future_runs_once() {
    assert_eq!(once(async || is_send(boxed(0)).await).await, "early");
    assert_eq!(once(async || is_send(boxed(1)).await).await, "boxed_futures:one:1");
    let name = String::from("acme");
    assert_eq!(once(async || is_send(borrowing(&name)).await).await, 4);
    assert_eq!(once(async || is_send(elided(&name)).await).await, 8);
    assert_eq!(once(async || local(1).await).await, 1);
    assert_eq!(once(async || is_send(failing("7")).await).await, 7);
    assert!(failing("x").await.is_err());
    let mut service = Service { tenant: "acme".to_owned() };
    assert_eq!(is_send(service.method()).await.expect("a first run"), "acme! boxed_futures:method:acme");
    assert_eq!(service.tenant, "acme!");
}
