//! `self` and `Self` inside bodies, with items that have their own.

// The registration of a job is an `unsafe fn` of `inventory`, and this lint looks into bodies.
#![allow(clippy::unsafe_derive_deserialize)]

use idem_runtime::{Error, idempotent};

use super::{memory, once_sync};

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Service {
    count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Tuple(u32);

trait Count {
    fn count(&self) -> u32;
}

impl Service {
    const MORE: u32 = 10;

    fn helper(&self) -> u32 {
        self.count
    }

    #[idempotent(key = "nested:built:<self.count>", idem = memory())]
    fn built(&self) -> Result<Self, Error> {
        let count = Self::helper(self) + Self::MORE;
        Ok(Self { count })
    }

    #[idempotent(key = "nested:items:<self.count>", idem = memory())]
    fn items(&self) -> Result<u32, Error> {
        struct Inner {
            count: u32,
        }
        impl Count for Inner {
            fn count(&self) -> u32 {
                self.count + Self::ZERO
            }
        }
        impl Inner {
            const ZERO: u32 = 0;
        }
        macro_rules! counted {
            ($it:expr) => {
                $it.count
            };
        }
        let add = |n: u32| self.count + n;
        let text = format!("{}", self.count);
        Ok(add(Inner { count: 1 }.count()) + counted!(self) + u32::from(text.len() == 1))
    }
}

impl Tuple {
    #[idempotent(key = "nested:tuple:<self.0>", idem = memory())]
    fn next(self) -> Result<Self, Error> {
        Ok(Self(self.0 + 1))
    }
}

#[test]
fn b6_self_means_what_it_meant() {
    let service = Service { count: 2 };
    assert_eq!(once_sync(|| service.built()), Service { count: 12 });
    assert_eq!(once_sync(|| service.items()), 6);
    assert_eq!(once_sync(|| Tuple(1).next()), Tuple(2));
}
