//! A job of a module.

use jobs::{Error, Idem, current, idempotent};

/// Tells its key.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "renamed:tenants:<name>", key_fn = charge_key, idem = idem, crate = ::jobs)]
pub fn charge(idem: &Idem, name: &str) -> Result<String, Error> {
    let _ = (idem, name);
    Ok(current().key().to_string())
}
