//! A crate that knows the runtime as `jobs`, by its manifest, and hands it on under that name.

pub use jobs;

mod caller;
pub mod tenants;
#[cfg(test)]
#[allow(unsafe_code)]
mod unsafe_functions;

pub use caller::Caller;

/// A job of the caller's, through this crate: for a user who has no other way to the runtime.
#[macro_export]
macro_rules! of_a_macro {
    ($(#[$meta:meta])* async fn $name:ident($id:ident: $ty:ty) -> $ret:ty, $key:literal, $idem:expr => $body:block) => {
        $(#[$meta])*
        #[$crate::jobs::idempotent(key = $key, crate = $crate::jobs, idem = $idem)]
        async fn $name($id: $ty) -> $ret $body
    };
}

/// A phase of the caller's, through this crate.
#[macro_export]
macro_rules! phase_of_a_macro {
    ($name:literal, $value:expr) => {
        $crate::jobs::phase!($name, async { $value })
    };
}
