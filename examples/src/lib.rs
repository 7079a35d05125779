//! What the examples share: a queue that delivers at least once, and the outside world in which effects are counted.

mod answer;
mod bank;
mod books;
mod charges;
mod counter;
mod crash;
mod crew;
mod database;
mod delivery;
mod http;
mod ledger;
mod month;
mod notice;
mod options;
mod outbox;
mod provider;
mod queue;
mod report;
mod stock;
mod tally;
mod terminal;
mod trouble;
mod warehouse;

pub use answer::Answer;
pub use bank::Bank;
pub use books::{Balance, Books};
pub use charges::{Charge, Charges};
pub use counter::serve;
pub use crash::Crash;
pub use crew::{Crew, work};
pub use database::{Begin, DEFAULT_DATABASE, database};
pub use delivery::Deliveries;
pub use ledger::Ledger;
pub use month::Month;
pub use notice::Notice;
pub use options::Options;
pub use outbox::Outbox;
pub use provider::Provider;
pub use queue::Queue;
pub use report::{Report, exit};
pub use stock::Stock;
pub use tally::{Settled, Tally};
pub use terminal::Terminal;
pub use trouble::{Trouble, Troubles};
pub use warehouse::{Inventory, Warehouse};

/// The code of the documents runs as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/modes.md")]
    struct Modes;
    #[doc = include_str!("../../docs/phases.md")]
    struct Phases;
    #[doc = include_str!("../../docs/operating.md")]
    struct Operating;
}
