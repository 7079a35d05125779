//! What a column's type does to its values, and what a change of the table does to workers that are busy with it.

mod change;
mod types;
mod values;

pub(super) use self::{change::*, types::*, values::*};
