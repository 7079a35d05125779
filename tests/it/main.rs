//! The integration tests of the workspace, in one binary.

mod bad_input;
mod breaks;
mod cases;
mod conformance;
mod deaths;
mod docs;
mod examples;
mod kit;
#[path = "../ui/pass/mod.rs"]
mod pass;
mod phases;
mod plans;
mod probes;
mod python;
mod registry;
mod rows;
mod settings;
mod transact;
mod ui;
mod watching;
