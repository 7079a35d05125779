//! `key_fn`: a sibling that renders the key alone.

#![allow(clippy::needless_lifetimes)]

use std::{borrow::Borrow, sync::Arc};

use idem_runtime::{Error, KeyPart, idempotent};

use super::memory;

#[derive(Clone)]
struct Order {
    id: u64,
}

struct Service {
    tenant: String,
}

impl Service {
    #[idempotent(key = "key_functions:own:<self.tenant>:<order.id>", key_fn = own_key, idem = memory())]
    async fn own(self: Arc<Self>, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[idempotent(key = "key_functions:associated:<id>", key_fn = associated_key, idem = memory())]
    async fn associated(&self, id: u64, other: u64) -> Result<u64, Error> {
        Ok(id + other + self.tenant.len() as u64)
    }
}

/// The second parameter's type is no matter of the key.
#[idempotent(key = "key_functions:generic:<id>", key_fn = generic_key, idem = memory())]
async fn generic<'a, T, U, const N: usize>(other: [U; N], id: &'a T, text: &str) -> Result<usize, Error>
where
    T: KeyPart + ?Sized,
    U: Into<u64>,
{
    let _ = id;
    Ok(other.len() + text.len())
}

#[idempotent(key = "key_functions:kinds:<text>:<any>:<list>", key_fn = kinds_key, idem = memory())]
fn kinds(mut text: String, any: impl KeyPart, list: &mut u8, (_, _): (u8, u8)) -> Result<String, Error> {
    let _ = any;
    *list += 1;
    text.push('!');
    Ok(text)
}

#[idempotent(key = "key_functions:bound:<id>", key_fn = bound_key, idem = memory())]
fn bound<K, B>(id: B, owned: K) -> Result<u8, Error>
where
    B: KeyPart + Borrow<u8>,
    K: Default,
{
    drop(owned);
    Ok(*id.borrow())
}

#[idempotent(key = "key_functions:constant", singleton, key_fn = constant_key, idem = memory())]
fn constant(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[tokio::test]
async fn a_key_function_renders_what_the_job_would() {
    let service = Arc::new(Service { tenant: "acme".to_owned() });
    let (order, mut list) = (Order { id: 3 }, 2);
    assert_eq!(Arc::clone(&service).own(order.clone()).await.expect("an order"), 3);
    assert_eq!(service.associated(4, 1).await.expect("a sum"), 9);
    assert_eq!(generic([1_u8, 2], "a:b", "c").await.expect("a sum"), 3);
    assert_eq!(kinds("t".to_owned(), 1_u8, &mut list, (1, 2)).expect("a text"), "t!");
    assert_eq!(bound::<u8, _>(5_u8, 1).expect("a number"), 5);
    assert_eq!(constant(6).expect("a number"), 6);
    let keys = [
        (service.own_key(&order), "key_functions:own:acme:3"),
        (Service::associated_key(&4), "key_functions:associated:4"),
        (generic_key("a:b"), "key_functions:generic:a%3Ab"),
        (kinds_key(&"t".to_owned(), &1_u8, &2), "key_functions:kinds:t:1:2"),
        (bound_key(&5_u8), "key_functions:bound:5"),
        (constant_key(), "key_functions:constant"),
    ];
    for (key, text) in keys {
        let key = key.expect("a key");
        assert_eq!(key.to_string(), text);
        assert!(memory().lookup(&key).await.expect("an answer").is_some(), "{key} is where the job's row is");
    }
}

#[test]
fn a_value_that_is_no_key_part_of_any_key_is_refused() {
    assert!(matches!(generic_key(""), Err(Error::InvalidKey { .. })));
}
