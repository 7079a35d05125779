//! `impl Trait` and `dyn Trait` parameters.

use std::fmt::{Debug, Display};

use idem_runtime::{Error, KeyPart, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

#[idempotent(key = "impl_trait:part:<id>", idem = memory())]
async fn part(id: impl KeyPart + Send + Sync, name: impl AsRef<str> + Send) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    let _ = id;
    Ok(name.as_ref().len())
}

#[idempotent(key = "impl_trait:lent:<id>", idem = memory())]
async fn lent(
    id: &(impl KeyPart + Sync + ?Sized),
    shown: &(impl Display + Sync),
    items: impl IntoIterator<Item = impl Into<u64>> + Send,
) -> Result<String, Error> {
    let _ = id;
    let sum: u64 = items.into_iter().map(Into::into).sum();
    tokio::task::yield_now().await;
    Ok(format!("{} {shown} {sum}", this_key()))
}

#[idempotent(key = "impl_trait:nested:<id>", idem = memory())]
fn nested(
    id: u8,
    pair: (impl Debug, Option<impl Display>),
    text: impl Into<String>,
) -> Result<String, Error> {
    let shown = pair.1.map_or_else(String::new, |shown| shown.to_string());
    Ok(format!("{id} {:?} {shown} {}", pair.0, text.into()))
}

#[idempotent(key = "impl_trait:objects:<id>", idem = memory())]
async fn objects(id: &(dyn KeyPart + Sync), shown: Box<dyn Display + Send>) -> Result<String, Error> {
    let _ = id;
    tokio::task::yield_now().await;
    Ok(format!("{} {shown}", this_key()))
}

#[tokio::test]
async fn b12_impl_trait_parameters_need_what_the_key_needs() {
    assert_eq!(once(async || is_send(part(1_u8, "abc")).await).await, 3);
    assert_eq!(once(async || is_send(part("x", String::from("abcd"))).await).await, 4);
    let call = async || is_send(lent("a", &5, [1_u8, 2])).await;
    assert_eq!(once(call).await, "impl_trait:lent:a 5 3");
    assert_eq!(once_sync(|| nested(1, ("a", Some(2)), "b")), "1 \"a\" 2 b");
    let call = async || is_send(objects(&7_u8, Box::new("shown"))).await;
    assert_eq!(once(call).await, "impl_trait:objects:7 shown");
}
