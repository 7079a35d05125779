//! Jobs that call themselves by name, on other keys.

use std::{future::Future, pin::Pin};

use idem_runtime::{Error, Outcome, idempotent, with_outcome, with_outcome_sync};

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

#[idempotent(key = "recursion:boxed:<n>", idem = memory())]
fn boxed(n: u32) -> Pin<Box<dyn Future<Output = Result<u32, Error>> + Send>> {
    Box::pin(async move { if n == 0 { Ok(0) } else { Ok(boxed(n - 1).await? + 1) } })
}

struct Tree {
    id: u32,
    children: Vec<Tree>,
}

impl Tree {
    #[idempotent(key = "recursion:tree:<self.id>", idem = memory())]
    async fn sum(&self) -> Result<u32, Error> {
        let mut sum = self.id;
        for child in &self.children {
            sum += Box::pin(child.sum()).await?;
        }
        Ok(sum)
    }
}

#[tokio::test]
async fn b2_a_job_that_calls_itself_goes_through_its_key() {
    assert_eq!(once(async || is_send(down(20)).await).await, 20);
    assert_eq!(with_outcome(down(7)).await.1, Some(Outcome::Replayed), "it ran inside");
    assert_eq!(once_sync(|| sync(20)), 20);
    assert_eq!(with_outcome_sync(|| sync(7)).1, Some(Outcome::Replayed), "it ran inside");
    assert_eq!(once(async || is_send(boxed(20)).await).await, 20);
    assert_eq!(with_outcome(boxed(7)).await.1, Some(Outcome::Replayed), "it ran inside");
}

#[tokio::test]
async fn b2_a_method_that_calls_itself_goes_through_its_key() {
    let leaf = |id| Tree { id, children: vec![] };
    let tree = Tree { id: 1, children: vec![leaf(2), Tree { id: 3, children: vec![leaf(4)] }] };
    assert_eq!(once(async || is_send(tree.sum()).await).await, 10);
    assert_eq!(with_outcome(leaf(4).sum()).await.1, Some(Outcome::Replayed), "it ran inside");
}
