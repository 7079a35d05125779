//! The shapes of `tests/ui/pass`, compiled by a crate of the older edition.

#[cfg(test)]
#[path = "../../ui/pass/mod.rs"]
mod pass;
