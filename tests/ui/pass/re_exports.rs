//! The runtime by way of another crate, which renamed it in its manifest.

use idem_tests_renamed::{Caller, jobs, of_a_macro, tenants};

use super::{memory, once, once_sync};

#[jobs::idempotent(key = "re_exports:async:<id>", key_fn = job_key, crate = ::idem_tests_renamed::jobs, idem = memory())]
async fn job(id: Id) -> Result<String, jobs::Error> {
    tokio::task::yield_now().await;
    let _ = id;
    Ok(jobs::current().key().to_string())
}

#[idem_tests_renamed::jobs::idempotent(key = "re_exports:sync:<id>", crate = jobs, idem = memory())]
fn sync(id: u8) -> Result<u8, jobs::Error> {
    Ok(id)
}

#[derive(Clone, Copy, jobs::KeyPart)]
#[key_part(crate = idem_tests_renamed::jobs)]
struct Id(u8);

of_a_macro! {
    /// Of a macro of that crate's, which names the runtime by `$crate`.
    async fn made(id: u8) -> Result<u8, jobs::Error>, "re_exports:made:<id>", memory() => { Ok(id + 1) }
}

#[tokio::test]
async fn the_runtime_is_found_by_way_of_another_crate() {
    assert_eq!(once(async || job(Id(1)).await).await, "re_exports:async:1");
    assert_eq!(job_key(&Id(1)).expect("a key").to_string(), "re_exports:async:1");
    assert_eq!(once_sync(|| sync(1)), 1);
    assert_eq!(once(async || made(1).await).await, 2);
}

#[tokio::test]
async fn a_job_of_another_crate_runs_once() {
    let caller = Caller::new(memory().clone());
    assert_eq!(once(async || caller.charge(1).await).await, "renamed:charge:1");
    assert_eq!(once_sync(|| tenants::charge(memory(), "north")), "renamed:tenants:north");
    assert_eq!(tenants::charge_key("a b").expect("a key").to_string(), "renamed:tenants:a%20b");
    assert!(idem_runtime::jobs::all().any(|job| job.path() == "idem_tests_renamed::tenants::charge"));
}
