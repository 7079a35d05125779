//! Attributes at the head of the body.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

#[idempotent(key = "inner_attributes:one:<id>", idem = memory())]
fn one(id: u8) -> Result<u8, Error> {
    #![allow(unused_variables)]
    #![allow(clippy::no_effect_underscore_binding)]
    let unused = 1;
    Ok(id)
}

#[idempotent(key = "inner_attributes:parameter:<id>", idem = memory())]
async fn parameter(id: u8, unused: u8) -> Result<u8, Error> {
    #![allow(unused_variables)]
    use std::convert::identity;
    tokio::task::yield_now().await;
    Ok(identity(id))
}

#[idempotent(key = "inner_attributes:kept:<id>", idem = memory())]
fn kept(id: u8) -> Result<u8, Error> {
    #![expect(unused_variables)]
    #![cfg_attr(all(), allow(unused_mut))]
    let mut never = 1;
    Ok(id)
}

#[idempotent(key = "inner_attributes:documented:<id>", idem = memory())]
fn documented(id: u8) -> Result<u8, Error> {
    //! What it does.
    Ok(id)
}

#[tokio::test]
async fn b11_attributes_at_the_head_of_a_body_hold() {
    assert_eq!(once_sync(|| one(1)), 1);
    assert_eq!(once(async || parameter(1, 2).await).await, 1);
    assert_eq!(once_sync(|| kept(1)), 1);
    assert_eq!(once_sync(|| documented(1)), 1);
}
