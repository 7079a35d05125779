//! What a `#[cfg]` removes or keeps: the function, a parameter, a statement, the attribute itself.

use idem_runtime::{Error, idempotent, jobs};

use super::{memory, once, once_sync};

#[idempotent(key = "conditional:parameters:<id>", idem = memory())]
fn parameters(id: u8, #[cfg(any())] removed: NoSuchType, #[cfg(not(any()))] kept: u8) -> Result<u8, Error> {
    #[cfg(any())]
    let id = id + removed;
    Ok(id + kept)
}

#[idempotent(key = "conditional:mutable:<id>", idem = memory())]
async fn mutable(
    id: u8,
    #[cfg(any())] mut removed: NoSuchType,
    #[cfg(not(any()))] mut kept: Vec<u8>,
) -> Result<usize, Error> {
    #[cfg(any())]
    removed.push(id);
    kept.push(id);
    Ok(kept.len())
}

#[cfg_attr(all(), idempotent(key = "conditional:applied:<id>", idem = memory()))]
fn applied(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[cfg_attr(any(), idempotent(key = "conditional:left_out:<id>", idem = memory()))]
fn left_out(id: u8) -> u8 {
    id
}

#[idempotent(key = "conditional:below:<id>", idem = memory(), key_fn = below_key)]
#[cfg(any())]
fn below(id: u8) -> Result<u8, NoSuchType> {
    Ok(id)
}

#[cfg(any())]
#[idempotent(key = "conditional:above:<id>", idem = memory(), key_fn = above_key)]
fn above(id: u8) -> Result<u8, NoSuchType> {
    Ok(id)
}

#[idempotent(key = "conditional:in_tests:<id>", idem = memory(), key_fn = in_tests_key)]
#[cfg(test)]
fn in_tests(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[tokio::test]
async fn b11_what_is_removed_is_no_matter() {
    assert_eq!(once_sync(|| parameters(1, 2)), 3);
    assert_eq!(once(async || mutable(1, vec![1]).await).await, 2);
    assert_eq!(once_sync(|| applied(1)), 1);
    assert_eq!(left_out(1), 1);
    assert_eq!(once_sync(|| in_tests(1)), 1);
    assert_eq!(in_tests_key(&1).expect("a key").to_string(), "conditional:in_tests:1");
}

#[test]
fn b11_a_job_that_is_removed_is_not_listed() {
    let here: Vec<_> = jobs::all().filter(|job| job.path().contains("::conditional::")).collect();
    let names = |name: &str| here.iter().filter(|job| job.path().ends_with(name)).count();
    assert_eq!((names("::parameters"), names("::applied"), names("::in_tests")), (1, 1, 1));
    assert_eq!((names("::below"), names("::above"), names("::left_out")), (0, 0, 0));
}
