//! Free async functions.

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once};

#[idempotent(key = "async_free:one:<user_id>:<month>", idem = memory())]
async fn charge(user_id: u64, month: &str, amount: u64) -> Result<String, Error> {
    tokio::task::yield_now().await;
    Ok(format!("{user_id} paid {amount} for {month}"))
}

#[idempotent(key = "async_free:after:<user_id>", mode = "record_after", idem = memory())]
async fn mail(user_id: u64) -> anyhow::Result<()> {
    tokio::task::yield_now().await;
    anyhow::ensure!(user_id > 0, "nobody");
    Ok(())
}

#[idempotent(key = "async_free:nightly", singleton, idem = memory())]
pub(crate) async fn nightly() -> Result<u8, Error> {
    Ok(3)
}

#[idempotent(key = "async_free:diverging:<n>", idem = memory())]
async fn diverging(n: u8) -> Result<u8, Error> {
    let _ = n;
    std::future::pending().await
}

#[tokio::test]
async fn an_async_function_runs_once() {
    assert_eq!(once(async || charge(7, "2024-06", 5).await).await, "7 paid 5 for 2024-06");
    once(async || mail(7).await).await;
    assert_eq!(once(nightly).await, 3);
}

#[tokio::test]
async fn another_key_runs_again() {
    assert_eq!(once(async || charge(8, "2024-06", 5).await).await, "8 paid 5 for 2024-06");
    assert_eq!(once(async || charge(8, "2024-07", 5).await).await, "8 paid 5 for 2024-07");
}

#[tokio::test]
async fn its_future_can_be_spawned() {
    let paid = tokio::spawn(is_send(charge(9, "2024-06", 5))).await.expect("a task that ends");
    assert_eq!(paid.expect("a charge"), "9 paid 5 for 2024-06");
    drop(is_send(diverging(1)));
}
