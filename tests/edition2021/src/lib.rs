//! The shapes of `tests/ui/pass`, compiled by a crate of the older edition.

#[path = "../../ui/pass/strict_lints.rs"]
pub mod strict_lints;

#[cfg(test)]
#[path = "../../ui/pass/mod.rs"]
mod pass;
