//! Parameters that a `#[cfg]` removes or keeps.

use idem_runtime::{Error, idempotent};

use super::{memory, once_sync};

#[idempotent(key = "conditional:<id>", idem = memory())]
fn job(id: u8, #[cfg(any())] removed: NoSuchType, #[cfg(not(any()))] kept: u8) -> Result<u8, Error> {
    #[cfg(any())]
    let id = id + removed;
    Ok(id + kept)
}

#[test]
fn removed_parameters_are_no_matter() {
    assert_eq!(once_sync(|| job(1, 2)), 3);
}
