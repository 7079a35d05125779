//! Tests of your own jobs: what becomes of them where a process dies.

pub use crate::point::{Point, at_every_point};
