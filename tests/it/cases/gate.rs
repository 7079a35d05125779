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

    /// Lets one body through.
    pub(crate) fn open(&self) {
        self.0.open.add_permits(1);
    }

    /// How many bodies came here that nobody waited for.
    pub(crate) fn waiting(&self) -> usize {
        self.0.arrived.available_permits()
    }
}
