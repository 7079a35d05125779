//! Provided methods of traits, and implementations that override them.

use idem_runtime::{Error, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

trait Work {
    const STEP: u8;

    fn tenant(&self) -> String;

    #[idempotent(key = "provided_methods:provided:<tenant>", idem = memory())]
    async fn provided(&self, tenant: String) -> Result<String, Error> {
        Ok(format!("{} {tenant} {}", self.tenant(), this_key()))
    }

    #[idempotent(key = "provided_methods:constants:<id>", idem = memory())]
    fn constants(&self, id: u8) -> Result<u8, Error> {
        Ok(id + Self::STEP)
    }

    #[idempotent(key = "provided_methods:sized:<id>", idem = memory())]
    fn sized(self, id: u8) -> Result<String, Error>
    where
        Self: Sized,
    {
        Ok(format!("{} {id}", self.tenant()))
    }

    #[idempotent(key = "provided_methods:overridden:<id>", idem = memory())]
    fn overridden(&mut self, id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}

struct Acme;

impl Work for Acme {
    const STEP: u8 = 1;

    fn tenant(&self) -> String {
        "acme".to_owned()
    }

    #[idempotent(key = "provided_methods:own:<id>", idem = memory())]
    fn overridden(&mut self, id: u8) -> Result<u8, Error> {
        Ok(id + 1)
    }
}

struct Plain;

impl Work for Plain {
    const STEP: u8 = 2;

    fn tenant(&self) -> String {
        "plain".to_owned()
    }

    fn overridden(&mut self, id: u8) -> Result<u8, Error> {
        Ok(id + 2)
    }
}

trait Spawned: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    #[idempotent(key = "provided_methods:tenants:<id>", idem = memory())]
    async fn run(&self, id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        let _ = id;
        Ok(self.name().to_owned())
    }
}

impl Spawned for Acme {
    fn name(&self) -> &'static str {
        "acme"
    }
}

#[tokio::test]
async fn b6_a_provided_method_runs_once() {
    let call = async || Acme.provided("north".to_owned()).await;
    assert_eq!(once(call).await, "acme north provided_methods:provided:north");
    assert_eq!(once_sync(|| Acme.constants(1)), 2);
    assert_eq!(once_sync(|| Acme.sized(1)), "acme 1");
    assert_eq!(once_sync(|| Acme.overridden(1)), 2);
    assert_eq!(once(async || is_send(Spawned::run(&Acme, 1)).await).await, "acme");
}

#[test]
fn b6_a_method_that_is_overridden_without_the_attribute_is_no_job() {
    assert_eq!(Plain.overridden(1).expect("a first run"), 3);
    assert_eq!(Plain.overridden(2).expect("another"), 4);
    assert_eq!(Plain.tenant(), "plain");
    assert_eq!(Plain::STEP, 2);
}
