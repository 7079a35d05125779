//! `tokio::spawn` with owned arguments, directly and around borrowed ones.

#![allow(clippy::manual_async_fn)]

use std::{future::Future, sync::Arc};

use idem_runtime::{Error, Outcome, idempotent, with_outcome};

use super::{memory, once};

#[idempotent(key = "spawned:owned:<name>", idem = memory())]
async fn owned(name: String, list: Vec<u8>) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    Ok(name.len() + list.len())
}

#[idempotent(key = "spawned:lent:<name>", idem = memory())]
async fn lent(name: &str, list: &[u8]) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    Ok(name.len() + list.len())
}

#[idempotent(key = "spawned:inside:<name>", idem = memory())]
async fn inside(name: String) -> anyhow::Result<usize> {
    let (left, right) = tokio::join!(
        tokio::spawn(lent_later(name.clone(), vec![1])),
        tokio::spawn(owned(format!("{name} inside"), vec![1, 2])),
    );
    Ok(left?? + right??)
}

fn lent_later(name: String, list: Vec<u8>) -> impl Future<Output = Result<usize, Error>> + Send + 'static {
    async move { lent(&name, &list).await }
}

struct Service(String);

impl Service {
    #[idempotent(key = "spawned:method:<self.0>", idem = memory())]
    async fn method(self: Arc<Self>) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(self.0.len())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_a_job_with_owned_arguments_can_be_spawned() {
    let call = async || tokio::spawn(with_outcome(owned("n".to_owned(), vec![1]))).await.expect("a task");
    let (first, outcome) = call().await;
    assert_eq!((first.expect("a sum"), outcome), (2, Some(Outcome::Executed)));
    let (second, outcome) = call().await;
    assert_eq!((second.expect("a sum"), outcome), (2, Some(Outcome::Replayed)));
    let service = Arc::new(Service("acme".to_owned()));
    assert_eq!(tokio::spawn(service.method()).await.expect("a task").expect("a length"), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_a_job_with_borrowed_arguments_can_be_spawned_in_a_block() {
    let task = tokio::spawn(lent_later("lent".to_owned(), vec![1, 2]));
    assert_eq!(task.await.expect("a task").expect("a sum"), 6);
    assert_eq!(once(async || inside("x".to_owned()).await).await, 12);
}
