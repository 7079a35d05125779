//! What the integration tests stand on: databases of their own, a network that fails on request, processes to
//! kill, a ledger that counts effects, and the log as a test can read it.
//!
//! Everything here fails a test the way tests fail, by a panic that says what was expected.

#![allow(clippy::missing_panics_doc)]

pub mod child;
mod ledger;
mod log;
mod proxy;
pub mod servers;
pub mod table;

pub use child::Child;
pub use ledger::Ledger;
pub use log::{Capture, Event};
pub use proxy::Proxy;
pub use servers::{Backend, Database, mysql_in_standard_words};
