//! Impls inside of bodies, with a `self` and a `Self` of their own, and jobs among their methods.

use std::ops::Add;

use idem_runtime::{Error, KeyPart, idempotent};

use super::{memory, once, once_sync, this_key};

struct Service {
    count: u32,
}

impl Service {
    const MORE: u32 = 10;

    #[idempotent(key = "inner_impls:outer:<self.count>", idem = memory())]
    fn outer(&self) -> Result<u32, Error> {
        #[derive(Clone, Copy)]
        struct Inner {
            count: u32,
        }

        impl Inner {
            const MORE: u32 = 100;

            fn sum(self) -> u32 {
                self.count + Self::MORE
            }
        }

        impl Add for Inner {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { count: self.count + other.count }
            }
        }

        let inner = Inner { count: 1 } + Inner { count: 2 };
        Ok(inner.sum() + self.count + Self::MORE)
    }

    #[idempotent(key = "inner_impls:with_a_job:<self.count>", idem = memory())]
    async fn with_a_job(&self) -> Result<String, Error> {
        #[derive(KeyPart)]
        struct Id(u32);

        struct Inner(Id);

        impl Inner {
            #[idempotent(key = "inner_impls:job:<self.0>", idem = memory())]
            async fn job(&self) -> Result<String, Error> {
                tokio::task::yield_now().await;
                Ok(this_key())
            }
        }

        trait Later {
            async fn later(&self) -> Result<String, Error>;
        }

        impl Later for Inner {
            #[idempotent(key = "inner_impls:later:<self.0>", idem = memory())]
            async fn later(&self) -> Result<String, Error> {
                Ok(this_key())
            }
        }

        let inner = Inner(Id(self.count));
        Ok(format!("{} {}", inner.job().await?, inner.later().await?))
    }
}

/// An impl of an outer trait for an outer type, which holds outside as well.
trait Doubled {
    fn doubled(&self) -> u32;
}

#[idempotent(key = "inner_impls:outside:<n>", idem = memory())]
#[expect(non_local_definitions)]
fn outside(n: u32) -> Result<u32, Error> {
    impl Doubled for Service {
        fn doubled(&self) -> u32 {
            self.count * 2
        }
    }
    Ok(Service { count: n }.doubled())
}

#[tokio::test]
async fn b6_an_impl_inside_a_body_has_its_own_self() {
    let service = Service { count: 1000 };
    assert_eq!(once_sync(|| service.outer()), 1113);
    let both = "inner_impls:job:1000 inner_impls:later:1000";
    assert_eq!(once(async || service.with_a_job().await).await, both);
    assert_eq!(once_sync(|| outside(4)), 8);
    assert_eq!(service.doubled(), 2000);
}
