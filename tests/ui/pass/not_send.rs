//! Bodies that never leave their thread.

use std::{cell::RefCell, rc::Rc};

use idem_runtime::{Error, idempotent};

use super::{memory, once};

#[idempotent(key = "not_send:log:<id>", idem = memory())]
async fn log(id: u8, log: Rc<RefCell<Vec<u8>>>) -> Result<u8, Error> {
    log.borrow_mut().push(id);
    tokio::task::yield_now().await;
    Ok(id)
}

#[tokio::test(flavor = "current_thread")]
async fn a_local_future_runs_in_a_local_set() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let local = tokio::task::LocalSet::new();
    let spawned = seen.clone();
    local
        .run_until(async move { tokio::task::spawn_local(log(1, spawned)).await })
        .await
        .expect("a task")
        .expect("a log");
    assert_eq!(*seen.borrow(), [1]);
    assert_eq!(once(async || log(2, seen.clone()).await).await, 2);
}
