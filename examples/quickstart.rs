//! One attribute, and a job that is delivered twice runs once.

use std::sync::atomic::{AtomicU32, Ordering};

use idem_runtime::{Idem, Outcome, idempotent, with_outcome};
use serde::{Deserialize, Serialize};

static CHARGES: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
    cents: u64,
}

#[idempotent(key = "billing:<user_id>:<month>", mode = "lock_first")]
async fn charge_user(user_id: u64, month: &str, cents: u64) -> anyhow::Result<Receipt> {
    let number = CHARGES.fetch_add(1, Ordering::SeqCst) + 1;
    println!("charging user {user_id} {cents} cents for {month}");
    Ok(Receipt { number, cents })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    Idem::connect("memory:").await?.install()?;

    let receipt = charge_user(42, "2024-06", 1900).await?;

    // The queue delivers the same job again: its body does not run, the stored receipt is the answer.
    let (again, outcome) = with_outcome(charge_user(42, "2024-06", 1900)).await;
    assert_eq!(again?, receipt);
    assert_eq!(outcome, Some(Outcome::Replayed));
    assert_eq!(CHARGES.load(Ordering::SeqCst), 1);

    // Another month is another key.
    charge_user(42, "2024-07", 1900).await?;
    assert_eq!(CHARGES.load(Ordering::SeqCst), 2);
    Ok(())
}
