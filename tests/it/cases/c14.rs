//! Our table in their database: its name and place, who may do what, whose migrations, and whose version.

mod migrations;
mod names;
mod rights;
mod role;
mod triggers;
mod versions;

pub(super) use self::{migrations::*, names::*, rights::*, triggers::*, versions::*};
