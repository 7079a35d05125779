//! `self: …`: receivers with a type of their own.

#![allow(clippy::needless_arbitrary_self_type)]

use std::{pin::Pin, rc::Rc, sync::Arc};

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

#[derive(Clone)]
struct Service {
    tenant: String,
    count: u32,
}

impl Service {
    #[idempotent(key = "smart_receivers:boxed:<self.tenant>", idem = memory())]
    async fn boxed(self: Box<Self>) -> Result<String, Error> {
        tokio::task::yield_now().await;
        Ok(format!("{} {}", this_key(), self.tenant))
    }

    #[idempotent(key = "smart_receivers:boxed_mut:<self.tenant>", idem = memory())]
    async fn boxed_mut(mut self: Box<Self>) -> Result<u32, Error> {
        self.count += 1;
        tokio::task::yield_now().await;
        Ok(self.count)
    }

    #[idempotent(key = "smart_receivers:rc:<self.tenant>", idem = memory())]
    async fn rc(self: Rc<Self>) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(self.tenant.len())
    }

    #[idempotent(key = "smart_receivers:rc_sync:<self.tenant>", idem = memory())]
    fn rc_sync(self: Rc<Self>) -> Result<usize, Error> {
        Ok(Rc::strong_count(&self))
    }

    #[idempotent(key = "smart_receivers:arc:<self.tenant>", idem = memory())]
    async fn arc(self: Arc<Self>) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(self.tenant.len())
    }

    #[idempotent(key = "smart_receivers:arc_mut:<self.tenant>", idem = memory())]
    async fn arc_mut(mut self: Arc<Self>) -> Result<u32, Error> {
        Arc::make_mut(&mut self).count += 2;
        Ok(self.count)
    }

    #[idempotent(key = "smart_receivers:arc_ref:<self.tenant>", idem = memory())]
    async fn arc_ref(self: &Arc<Self>) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(Arc::strong_count(self))
    }

    #[idempotent(key = "smart_receivers:rc_ref:<self.tenant>", idem = memory())]
    fn rc_ref<'a>(self: &'a Rc<Self>, other: &'a str) -> Result<usize, Error> {
        Ok(Rc::strong_count(self) + other.len())
    }

    #[idempotent(key = "smart_receivers:pinned:<self.tenant>", idem = memory())]
    async fn pinned(mut self: Pin<&mut Self>) -> Result<u32, Error> {
        self.count += 1;
        tokio::task::yield_now().await;
        Ok(self.count)
    }

    #[idempotent(key = "smart_receivers:pinned_shared:<self.tenant>", idem = memory())]
    async fn pinned_shared(self: Pin<&Self>, id: u8) -> Result<u32, Error> {
        tokio::task::yield_now().await;
        Ok(self.count + u32::from(id))
    }

    #[idempotent(key = "smart_receivers:pinned_box:<self.tenant>", idem = memory())]
    async fn pinned_box(self: Pin<Box<Self>>) -> Result<u32, Error> {
        Ok(self.count)
    }

    #[idempotent(key = "smart_receivers:by_type:<self.tenant>", idem = memory())]
    async fn by_type(self: Self) -> Result<String, Error> {
        Ok(self.tenant)
    }

    #[idempotent(key = "smart_receivers:by_reference_type:<self.tenant>", idem = memory())]
    fn by_reference_type(self: &mut Self) -> Result<u32, Error> {
        self.count += 1;
        Ok(self.count)
    }
}

#[tokio::test]
async fn b6_a_receiver_may_have_a_type_of_its_own() {
    let acme = Service { tenant: "acme".to_owned(), count: 0 };
    let boxed = async || is_send(Box::new(acme.clone()).boxed()).await;
    assert_eq!(once(boxed).await, "smart_receivers:boxed:acme acme");
    assert_eq!(once(async || is_send(Box::new(acme.clone()).boxed_mut()).await).await, 1);
    assert_eq!(once(async || Rc::new(acme.clone()).rc().await).await, 4);
    assert_eq!(once_sync(|| Rc::new(acme.clone()).rc_sync()), 1);
    assert_eq!(once(async || is_send(Arc::new(acme.clone()).arc()).await).await, 4);
    assert_eq!(once(async || is_send(Arc::new(acme.clone()).arc_mut()).await).await, 2);
    let arc = Arc::new(acme.clone());
    assert_eq!(once(async || is_send(arc.arc_ref()).await).await, 1);
    let rc = Rc::new(acme.clone());
    assert_eq!(once_sync(|| rc.rc_ref("ab")), 3);
    assert_eq!(once(async || is_send(Pin::new(&mut acme.clone()).pinned()).await).await, 1);
    assert_eq!(once(async || is_send(Pin::new(&acme).pinned_shared(3)).await).await, 3);
    assert_eq!(once(async || is_send(Box::pin(acme.clone()).pinned_box()).await).await, 0);
    assert_eq!(once(async || is_send(acme.clone().by_type()).await).await, "acme");
    assert_eq!(once_sync(|| acme.clone().by_reference_type()), 1);
}

#[tokio::test]
async fn b6_an_exclusive_receiver_is_changed_by_the_run_and_not_by_the_replay() {
    let mut north = Service { tenant: "north".to_owned(), count: 5 };
    assert_eq!(Pin::new(&mut north).pinned().await.expect("a first run"), 6);
    assert_eq!(Pin::new(&mut north).pinned().await.expect("a replay"), 6);
    assert_eq!(north.by_reference_type().expect("a first run"), 7);
    assert_eq!(north.by_reference_type().expect("a replay"), 7);
    assert_eq!(north.count, 7);
}
