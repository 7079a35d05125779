//! `fn … -> impl Future + Send` in a trait, implemented by an annotated `async fn`.

use std::{future::Future, sync::Arc};

use idem_runtime::{Error, Outcome, idempotent, with_outcome};

use super::{is_send, memory, once, this_key};

trait Work: Send + Sync + 'static {
    fn run(&self, id: u8) -> impl Future<Output = Result<String, Error>> + Send;

    fn consumed(self, id: u8) -> impl Future<Output = Result<u8, Error>> + Send + 'static
    where
        Self: Sized;

    fn lent<'a>(&'a mut self, name: &'a str) -> impl Future<Output = anyhow::Result<usize>> + Send + 'a;
}

struct Acme {
    tenant: String,
    seen: Vec<String>,
}

impl Work for Acme {
    #[idempotent(key = "spawnable_methods:run:<self.tenant>:<id>", idem = memory())]
    async fn run(&self, id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        let _ = id;
        Ok(this_key())
    }

    #[idempotent(key = "spawnable_methods:consumed:<self.tenant>:<id>", idem = memory())]
    async fn consumed(self, id: u8) -> Result<u8, Error> {
        tokio::task::yield_now().await;
        drop(self);
        Ok(id)
    }

    #[idempotent(key = "spawnable_methods:lent:<self.tenant>:<name>", idem = memory())]
    async fn lent<'a>(&'a mut self, name: &'a str) -> anyhow::Result<usize> {
        self.seen.push(name.to_owned());
        tokio::task::yield_now().await;
        Ok(self.seen.len())
    }
}

fn acme() -> Acme {
    Acme { tenant: "acme".to_owned(), seen: Vec::new() }
}

/// Knows the trait alone.
async fn spawn<W: Work>(work: Arc<W>) -> (Result<String, Error>, Option<Outcome>) {
    tokio::spawn(async move { with_outcome(work.run(2)).await }).await.expect("a task")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b6_a_method_whose_future_must_be_send_runs_once() {
    let call = async || is_send(acme().run(1)).await;
    assert_eq!(once(call).await, "spawnable_methods:run:acme:1");
    let (spawned, outcome) = spawn(Arc::new(acme())).await;
    assert_eq!(spawned.expect("a key"), "spawnable_methods:run:acme:2");
    assert_eq!(outcome, Some(Outcome::Executed));
    for expected in [Outcome::Executed, Outcome::Replayed] {
        let (consumed, outcome) = tokio::spawn(with_outcome(acme().consumed(1))).await.expect("a task");
        assert_eq!((consumed.expect("a number"), outcome), (1, Some(expected)));
    }
    let mut acme = acme();
    for _ in 0..2 {
        let name = String::from("n");
        let lent = is_send(acme.lent(&name)).await;
        drop(name);
        assert_eq!(lent.expect("a count"), 1);
    }
    assert_eq!(acme.seen, ["n"]);
}
