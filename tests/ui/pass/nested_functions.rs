//! Jobs inside of functions, of jobs, of methods, of closures and of blocks.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync, this_key};

#[idempotent(key = "nested_functions:outer:<id>", idem = memory())]
fn outer(id: u8) -> Result<u8, Error> {
    #[idempotent(key = "nested_functions:inner:<id>", idem = memory())]
    fn inner(id: u8) -> Result<u8, Error> {
        Ok(id + 1)
    }
    inner(id)
}

#[idempotent(key = "nested_functions:outer_async:<id>", idem = memory())]
async fn outer_async(id: u8) -> Result<String, Error> {
    #[idempotent(key = "nested_functions:inner_async:<id>", idem = memory())]
    async fn inner(id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        let _ = id;
        Ok(this_key())
    }
    let inner = inner(id).await?;
    Ok(format!("{} {inner}", this_key()))
}

/// A plain function, whose jobs are its own.
fn plain(id: u8) -> Result<u8, Error> {
    {
        #[idempotent(key = "nested_functions:in_a_block:<id>", idem = memory())]
        fn job(id: u8) -> Result<u8, Error> {
            Ok(id + 10)
        }
        job(id)?;
    }
    let in_a_closure = || {
        #[idempotent(key = "nested_functions:in_a_closure:<id>", idem = memory())]
        fn job(id: u8) -> Result<u8, Error> {
            Ok(id + 20)
        }
        job(id)
    };
    in_a_closure()
}

struct Service;

impl Service {
    #[idempotent(key = "nested_functions:method:<id>", idem = memory())]
    async fn method(&self, id: u8) -> Result<String, Error> {
        #[idempotent(key = "nested_functions:in_a_method:<service>:<id>", idem = memory())]
        async fn job(service: &str, id: u8) -> Result<String, Error> {
            let _ = (service, id);
            Ok(this_key())
        }
        job("s", id).await
    }
}

/// Two of one name, and one deeper.
#[idempotent(key = "nested_functions:deep:<id>", idem = memory())]
fn deep(id: u8) -> Result<u8, Error> {
    #[idempotent(key = "nested_functions:deeper:<id>", idem = memory())]
    fn deep(id: u8) -> Result<u8, Error> {
        #[idempotent(key = "nested_functions:deepest:<id>", idem = memory())]
        fn deep(id: u8) -> Result<u8, Error> {
            Ok(id * 2)
        }
        deep(id + 1)
    }
    deep(id + 1)
}

#[tokio::test]
async fn b6_a_nested_job_is_a_job_of_its_own() {
    assert_eq!(once_sync(|| outer(1)), 2);
    assert_eq!(
        once(async || outer_async(1).await).await,
        "nested_functions:outer_async:1 nested_functions:inner_async:1"
    );
    assert_eq!(plain(1).expect("a first run"), 21);
    assert_eq!(plain(1).expect("a replay"), 21);
    assert_eq!(once(async || Service.method(1).await).await, "nested_functions:in_a_method:s:1");
    assert_eq!(once_sync(|| deep(1)), 6);
}
