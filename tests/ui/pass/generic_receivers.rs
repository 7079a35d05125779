//! Methods of `impl<T: Store> Svc<T>`, for each receiver.

#![allow(clippy::unsafe_derive_deserialize)]

use std::{marker::PhantomData, pin::Pin, sync::Arc};

use idem_runtime::{Error, KeyPart, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

trait Store {
    const NAME: &'static str;

    type Id: KeyPart + Clone + Send + Sync;

    fn load(&self, id: &Self::Id) -> usize;
}

#[derive(Clone)]
struct Numbers;

impl Store for Numbers {
    const NAME: &'static str = "numbers";

    type Id = String;

    fn load(&self, id: &String) -> usize {
        id.len()
    }
}

#[derive(Clone)]
struct Svc<T: Store> {
    store: T,
    id: T::Id,
    loaded: usize,
}

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(bound = "")]
struct Wrapped<T>(u32, PhantomData<T>);

impl<T: Store> Svc<T> {
    const EXTRA: usize = T::NAME.len();

    fn helper(&self) -> usize {
        self.store.load(&self.id)
    }
}

impl<T: Store + Clone + Send + Sync + Unpin> Svc<T>
where
    T::Id: Unpin,
{
    #[idempotent(key = "generic_receivers:shared:<self.id>:<n>", idem = memory())]
    async fn shared(&self, n: usize) -> Result<String, Error> {
        tokio::task::yield_now().await;
        Ok(format!("{} {} {}", T::NAME, this_key(), Self::helper(self) + n))
    }

    #[idempotent(key = "generic_receivers:exclusive:<self.id>", idem = memory())]
    async fn exclusive(&mut self) -> Result<usize, Error> {
        self.loaded += self.store.load(&self.id) + Self::EXTRA;
        tokio::task::yield_now().await;
        Ok(self.loaded)
    }

    #[idempotent(key = "generic_receivers:owned_mut:<self.id>", idem = memory())]
    async fn owned_mut(mut self) -> Result<usize, Error> {
        self.loaded += 1;
        let Self { loaded, .. } = self;
        Ok(loaded)
    }

    #[idempotent(key = "generic_receivers:arc:<self.id>", idem = memory())]
    async fn arc(self: Arc<Self>) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(self.helper())
    }

    #[idempotent(key = "generic_receivers:arc_ref:<self.id>", idem = memory())]
    async fn arc_ref(self: &Arc<Self>) -> Result<usize, Error> {
        let other = Self { loaded: 1, ..Self::clone(self) };
        tokio::task::yield_now().await;
        Ok(other.helper() + other.loaded)
    }

    #[idempotent(key = "generic_receivers:pinned:<self.id>", idem = memory())]
    async fn pinned(mut self: Pin<&mut Self>) -> Result<usize, Error> {
        self.loaded += 10;
        Ok(self.loaded)
    }

    #[idempotent(key = "generic_receivers:sync:<self.id>:<id>", idem = memory())]
    fn sync<I: Into<T::Id>>(&self, id: u8, other: I) -> Result<usize, Error> {
        Ok(self.store.load(&other.into()) + usize::from(id))
    }
}

impl<T: Store> Wrapped<T>
where
    Self: Clone,
{
    #[idempotent(key = "generic_receivers:wrapped:<self.0>", idem = memory())]
    fn next(self) -> Result<Self, Error> {
        let made = Self(self.0 + 1, PhantomData);
        let closed = || Self(made.0 + 1, self.1);
        Ok(closed())
    }
}

#[tokio::test]
async fn b6_a_generic_type_has_every_receiver() {
    let svc = Svc { store: Numbers, id: "abc".to_owned(), loaded: 0 };
    let call = async || is_send(svc.shared(2)).await;
    assert_eq!(once(call).await, "numbers generic_receivers:shared:abc:2 5");
    assert_eq!(once(async || is_send(svc.clone().exclusive()).await).await, 10);
    assert_eq!(once(async || is_send(svc.clone().owned_mut()).await).await, 1);
    assert_eq!(once(async || is_send(Arc::new(svc.clone()).arc()).await).await, 3);
    let arc = Arc::new(svc.clone());
    assert_eq!(once(async || is_send(arc.arc_ref()).await).await, 4);
    assert_eq!(once(async || is_send(Pin::new(&mut svc.clone()).pinned()).await).await, 10);
    assert_eq!(once_sync(|| svc.sync(1, "abcd")), 5);
    assert_eq!(once_sync(|| Wrapped::<Numbers>(1, PhantomData).next().map(|next| next.0)), 3);
}
