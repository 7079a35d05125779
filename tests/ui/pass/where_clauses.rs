//! Bounds, in place and behind `where`.

use std::{borrow::Borrow, fmt::Display, ops::Add};

use idem_runtime::{Error, KeyPart, idempotent};
use serde::{Serialize, de::DeserializeOwned};

use super::{is_send, memory, once, once_sync};

#[idempotent(key = "where_clauses:summed:<id>", idem = memory())]
async fn summed<I, T>(id: u8, items: I) -> Result<u64, Error>
where
    I: IntoIterator<Item = T>,
    T: Into<u64>,
{
    let _ = id;
    Ok(items.into_iter().map(Into::into).sum())
}

#[idempotent(key = "where_clauses:many:<id>", idem = memory())]
async fn many<'a, K, V>(id: K, left: V, right: &'a V) -> Result<V, Error>
where
    K: KeyPart + Display + Send + Sync + 'a,
    V: Copy + Send + Sync + Serialize + DeserializeOwned,
    &'a V: Add<V, Output = V>,
    for<'b> &'b V: Add<&'b V, Output = V>,
    Vec<V>: Clone,
    String: Borrow<str>,
{
    tokio::task::yield_now().await;
    let _ = id;
    Ok(right + left)
}

#[idempotent(key = "where_clauses:sized:<id>", idem = memory())]
fn not_sized<T>(id: u8, text: &T) -> Result<usize, Error>
where
    T: AsRef<str> + ?Sized,
{
    Ok(text.as_ref().len() + usize::from(id))
}

struct Service<R>
where
    R: Rates,
{
    rates: R,
}

trait Rates {
    type Rate: Copy + Into<u64>;

    fn rate(&self) -> Self::Rate;
}

struct Flat(u8);

impl Rates for Flat {
    type Rate = u8;

    fn rate(&self) -> u8 {
        self.0
    }
}

impl<R> Service<R>
where
    R: Rates + Sync,
{
    #[idempotent(key = "where_clauses:charged:<id>", idem = memory())]
    async fn charged<T>(&self, id: T) -> Result<u64, Error>
    where
        T: KeyPart + Copy + Into<u64> + Send + Sync,
        R::Rate: Send,
    {
        let rate = self.rates.rate();
        tokio::task::yield_now().await;
        Ok(id.into() * rate.into())
    }
}

#[tokio::test]
async fn b7_bounds_hold_behind_where() {
    assert_eq!(once(async || is_send(summed(1, [1_u8, 2])).await).await, 3);
    let right = 2_i32;
    assert_eq!(once(async || is_send(many("k", 1, &right)).await).await, 3);
    assert_eq!(once_sync(|| not_sized(1, "abc")), 4);
    let service = Service { rates: Flat(3) };
    assert_eq!(once(async || is_send(service.charged(5_u32)).await).await, 15);
}
