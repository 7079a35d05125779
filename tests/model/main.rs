//! The claim protocol, model-checked: every interleaving of workers, faults, watchers and people up to a bound that each
//! configuration states, with the invariants checked in every state.
//!
//! What is model-checked is what runs: a call decides by the runtime's own [`decide`](idem_runtime::record::decide), its
//! endings are judged by [`Ending::expects`](idem_runtime::store::Ending::expects) and its neighbours, and a write does
//! to the row what the reference [`Table`](idem_tests::table::Table) does, which every store is held against by
//! `conformance::*::any_history_of_writes_reads_as_the_references`.
//!
//! - [`protocol`]: what can happen, as actions of a [`stateright::Model`]; [`state`]: what there is.
//! - [`call`], [`write`], [`person`]: the parts of it, each as the runtime has it.
//! - [`life`]: the history that the invariants speak of, and the invariants in words; [`witness`]: where they are checked.
//! - [`sight`]: what a configuration has to come to, so that its invariants do not hold for want of trouble.
//! - [`recovery`]: that no key is wedged.
//! - [`telling`]: the protocol of alerts, a model of its own.
//! - [`phases`]: a job of phases, a model of its own.
//! - [`mutant`]: broken protocols, each of which the checker has to find.
//!
//! `cargo test -p idem-tests --test model -- --nocapture` prints the states, the depth and the time of each
//! configuration.

mod bites;
mod call;
mod holds;
mod job;
mod life;
mod mutant;
mod person;
mod phases;
mod protocol;
mod recovery;
mod sight;
mod state;
mod telling;
mod witness;
mod write;
