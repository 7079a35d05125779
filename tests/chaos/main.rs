//! Chaos: worker processes that are killed, stopped and cut off while they share thousands of keys, a database that is
//! restarted under them, and a queue that delivers at least once. What was promised is then looked for in what happened.
//!
//! `cargo xtask chaos` runs it, for it owns the servers; `docs/operating.md` tells what is done and what is checked.

#![cfg(unix)]

mod bank;
mod book;
mod campaign;
mod check;
mod clock;
mod crew;
mod delivery;
mod history;
mod jobs;
mod key;
mod order;
mod person;
mod plan;
mod queue;
mod report;
mod server;
mod settings;
mod skew;
mod worker;

use idem_tests::child::Parent;

#[test]
#[ignore = "`cargo xtask chaos` runs it"]
fn run() {
    if let Some(parent) = Parent::attach() {
        campaign::run(parent, settings::Settings::of_environment());
    }
}

#[test]
#[ignore = "the child of `run`"]
fn worker() {
    if let Some(parent) = Parent::attach() {
        worker::work(parent);
    }
}
