//! Jobs that call themselves by name, on other keys.

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "recursion:down:<n>", idem = memory())]
async fn down(n: u32) -> Result<u32, Error> {
    if n == 0 {
        return Ok(0);
    }
    Ok(Box::pin(down(n - 1)).await? + 1)
}

#[idempotent(key = "recursion:sync:<n>", idem = memory())]
fn sync(n: u32) -> Result<u32, Error> {
    if n == 0 { Ok(0) } else { Ok(sync(n - 1)? + 1) }
}

#[tokio::test]
async fn a_job_can_call_itself() {
    assert_eq!(once(async || is_send(down(20)).await).await, 20);
    assert_eq!(once_sync(|| sync(20)), 20);
}
