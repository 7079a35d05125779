use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// A place in a body where a case holds it until it says so.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Sides>);

#[derive(Debug)]
struct Sides {
    arrived: Semaphore,
    open: Semaphore,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Sides { arrived: Semaphore::new(0), open: Semaphore::new(0) }))
    }

    /// In the body: says that it is here and waits.
    pub(crate) async fn pass(&self) {
        self.0.arrived.add_permits(1);
        self.0.open.acquire().await.expect("never closed").forget();
    }

    /// Waits until a body is here.
    pub(crate) async fn arrived(&self) {
        let arrived = timeout(Duration::from_secs(30), self.0.arrived.acquire()).await;
        arrived.expect("a body that comes to the gate").expect("never closed").forget();
    }

    /// Runs a call until its body is here. Whoever does not poll it on has a worker that stands still.
    pub(crate) async fn stops<F: Future + Unpin>(&self, call: &mut F) {
        tokio::select! {
            biased;
            () = self.arrived() => {}
            _ = call => panic!("the call ended before its body came to the gate"),
        }
    }

    /// Lets one body through.
    pub(crate) fn open(&self) {
        self.0.open.add_permits(1);
    }
}
