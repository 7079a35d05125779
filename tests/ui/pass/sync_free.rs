//! Free sync functions, called from a plain thread and from inside a runtime.

use idem_runtime::{Error, idempotent};

use super::{memory, once_sync};

#[idempotent(key = "sync_free:one:<name>", idem = memory())]
fn greet(name: &str) -> Result<String, Error> {
    Ok(format!("hello {name}"))
}

#[idempotent(key = "sync_free:after:<id>", mode = "record_after", ttl = "2h", idem = memory())]
fn square(id: u32) -> anyhow::Result<u32> {
    Ok(id * id)
}

#[test]
fn a_sync_function_runs_once() {
    assert_eq!(once_sync(|| greet("you")), "hello you");
    assert_eq!(once_sync(|| square(4)), 16);
}

#[tokio::test]
async fn a_sync_function_runs_once_inside_a_runtime() {
    assert_eq!(once_sync(|| greet("all")), "hello all");
}
