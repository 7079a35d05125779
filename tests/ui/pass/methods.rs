//! Inherent methods: `&self`, `&mut self`, `self`, `mut self`, and none.

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync};

#[derive(Clone)]
struct Service {
    tenant: String,
    count: u32,
}

impl Service {
    const STEP: u32 = 2;

    #[idempotent(key = "methods:shared:<self.tenant>:<id>", idem = memory())]
    async fn shared(&self, id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        Ok(format!("{} {id}", self.tenant))
    }

    #[idempotent(key = "methods:exclusive:<self.tenant>:<id>", idem = memory())]
    async fn exclusive(&mut self, id: u32) -> Result<u32, Error> {
        self.count += id * Self::STEP;
        tokio::task::yield_now().await;
        Ok(self.count)
    }

    #[idempotent(key = "methods:owned:<self.tenant>", idem = memory())]
    async fn owned(self) -> Result<String, Error> {
        Ok(self.tenant)
    }

    #[idempotent(key = "methods:owned_mut:<self.tenant>", idem = memory())]
    async fn owned_mut(mut self) -> Result<u32, Error> {
        self.count += 1;
        Ok(self.count)
    }

    #[idempotent(key = "methods:sync:<self.tenant>", idem = memory())]
    fn sync(&mut self) -> Result<u32, Error> {
        self.count += 1;
        Ok(self.count)
    }

    #[idempotent(key = "methods:associated:<id>", idem = memory())]
    async fn associated(id: u32) -> Result<u32, Error> {
        Ok(id * Self::STEP)
    }
}

fn service(tenant: &str) -> Service {
    Service { tenant: tenant.to_owned(), count: 0 }
}

#[tokio::test]
async fn b6_each_receiver_works() {
    let acme = service("acme");
    assert_eq!(once(async || is_send(acme.shared(1)).await).await, "acme 1");
    assert_eq!(once(async || is_send(acme.clone().exclusive(3)).await).await, 6);
    assert_eq!(once(async || is_send(acme.clone().owned()).await).await, "acme");
    assert_eq!(once(async || is_send(acme.clone().owned_mut()).await).await, 1);
    assert_eq!(once_sync(|| acme.clone().sync()), 1);
    assert_eq!(once(async || Service::associated(4).await).await, 8);
}

#[tokio::test]
async fn a_key_with_self_tells_tenants_apart() {
    let (north, south) = (service("north"), service("south"));
    assert_eq!(once(async || north.shared(1).await).await, "north 1");
    assert_eq!(once(async || south.shared(1).await).await, "south 1");
}
