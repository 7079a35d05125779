//! The shapes of `tests/ui/pass`, compiled by a crate of the older edition.

#![allow(clippy::duplicate_mod, reason = "`strict_lints` is public, too, so that `missing_docs` sees it")]

#[path = "../../ui/pass/strict_lints.rs"]
pub mod strict_lints;

#[cfg(test)]
#[path = "../../ui/pass/mod.rs"]
mod pass;
