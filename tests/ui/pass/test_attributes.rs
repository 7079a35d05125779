//! `#[test]` and `#[tokio::test]` above and below: a test that is a job.

use idem_runtime::{Error, idempotent};

use super::{memory, this_key};

#[tokio::test]
#[idempotent(key = "test_attributes:above", singleton, idem = memory())]
async fn b11_a_test_above_is_a_job() -> Result<(), Error> {
    tokio::task::yield_now().await;
    assert_eq!(this_key(), "test_attributes:above");
    Ok(())
}

#[idempotent(key = "test_attributes:below", singleton, idem = memory())]
#[tokio::test]
async fn b11_a_test_below_is_a_job() -> Result<(), Error> {
    tokio::task::yield_now().await;
    assert_eq!(this_key(), "test_attributes:below");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[idempotent(key = "test_attributes:threads_above", singleton, idem = memory())]
async fn b11_a_test_of_many_threads_above_is_a_job() -> anyhow::Result<()> {
    tokio::spawn(async {}).await?;
    assert_eq!(this_key(), "test_attributes:threads_above");
    Ok(())
}

#[idempotent(key = "test_attributes:threads_below", singleton, idem = memory())]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b11_a_test_of_many_threads_below_is_a_job() -> anyhow::Result<()> {
    tokio::spawn(async {}).await?;
    assert_eq!(this_key(), "test_attributes:threads_below");
    Ok(())
}

#[test]
#[idempotent(key = "test_attributes:sync_above", singleton, idem = memory())]
fn b11_a_sync_test_above_is_a_job() -> Result<(), Error> {
    assert_eq!(this_key(), "test_attributes:sync_above");
    Ok(())
}

#[idempotent(key = "test_attributes:sync_below", singleton, idem = memory())]
#[test]
fn b11_a_sync_test_below_is_a_job() -> Result<(), Error> {
    assert_eq!(this_key(), "test_attributes:sync_below");
    Ok(())
}
