//! A scope in which the usual names mean something else.

#![allow(dead_code, clippy::upper_case_acronyms)]

use idem_runtime::idempotent;

use super::{memory, once, once_sync};

mod core {}
mod std {}
mod alloc {}
mod inventory {}
mod serde {}

struct String;
struct Result;
struct Option;
struct Box;
struct Send;
#[allow(non_camel_case_types)]
struct u64;
#[allow(non_camel_case_types)]
struct str;

mod answers {
    pub(super) enum Answer {
        Ok,
        Err,
        Some,
        None,
    }
}

#[allow(unused_imports)]
use answers::Answer::{Err, None, Ok, Some};

type Outcome = ::core::result::Result<u8, ::idem_runtime::Error>;

#[idempotent(key = "shadowed:one:<id>", key_fn = one_key, idem = memory())]
async fn one(id: u8) -> Outcome {
    ::tokio::task::yield_now().await;
    Outcome::Ok(id)
}

#[idempotent(key = "shadowed:sync:<id>", idem = memory())]
fn sync(id: u8) -> Outcome {
    Outcome::Ok(id)
}

#[idempotent(key = "shadowed:boxed:<id>", idem = memory())]
fn boxed(id: u8) -> ::std::pin::Pin<::std::boxed::Box<dyn ::std::future::Future<Output = Outcome>>> {
    ::std::boxed::Box::pin(async move { Outcome::Ok(id) })
}

#[derive(::idem_runtime::KeyPart)]
struct Id(u8);

#[derive(::idem_runtime::KeyPart)]
enum Kind {
    Ok,
    None,
}

#[tokio::test]
async fn b2_modules_and_types_may_have_any_name() {
    ::std::assert_eq!(once(async || one(1).await).await, 1);
    ::std::assert_eq!(once_sync(|| sync(1)), 1);
    ::std::assert_eq!(once(async || boxed(1).await).await, 1);
    ::std::assert!(one_key(&1).is_ok());
}
