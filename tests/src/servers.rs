//! The back ends a test can run on, and a fresh database on each.

mod backend;
mod database;

pub use backend::Backend;
pub use database::{Database, mysql_in_standard_words};
