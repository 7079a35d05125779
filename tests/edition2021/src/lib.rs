//! The shapes of `tests/ui/pass`, compiled by a crate of the older edition.

#[path = "../../ui/pass/strict_lints.rs"]
pub mod strict_lints;

#[cfg(test)]
#[allow(clippy::duplicate_mod, reason = "`strict_lints` is public above so that `missing_docs` sees it")]
#[path = "../../ui/pass/mod.rs"]
mod pass;
