//! What a configuration has to come to somewhere: an invariant holds easily where nothing happens.

use idem_runtime::Status;
use stateright::Property;

use crate::{call::At, protocol::Protocol, state::State};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Sight {
    /// A key is completed.
    Completed,
    /// A key is completed after a takeover.
    CompletedByAnHeir,
    /// A key needs review.
    InReview,
    /// A body whose claim another execution took goes on.
    Zombie,
    /// A key had two effects.
    TwoEffects,
    /// A row was purged or forgotten.
    Gone,
    /// A person freed a key, and it was completed after that.
    CompletedAfterReview,
}

impl Sight {
    pub(crate) fn property(self) -> Property<Protocol> {
        match self {
            Self::Completed => sometimes("a key is completed", |_, state| is(state, &Status::Completed)),
            Self::CompletedByAnHeir => sometimes("an heir completes a key", |_, state| {
                is(state, &Status::Completed) && state.row(0).is_some_and(|row| row.takeovers > 0)
            }),
            Self::InReview => sometimes("a key needs review", |_, state| is(state, &Status::NeedsReview)),
            Self::Zombie => sometimes("a zombie goes on beside its heir", |_, state| {
                state
                    .calls
                    .iter()
                    .any(|call| matches!(&call.at, At::Did(of) if of.fence < state.lives[call.key].highest))
            }),
            Self::TwoEffects => sometimes("a key has two effects", |_, state| state.lives[0].effects == 2),
            Self::Gone => sometimes("a row is gone", |_, state| state.table.floor > 0),
            Self::CompletedAfterReview => sometimes("a key that was freed is completed", |_, state| {
                is(state, &Status::Completed) && state.lives[0].freed
            }),
        }
    }
}

fn sometimes(name: &'static str, seen: fn(&Protocol, &State) -> bool) -> Property<Protocol> {
    Property::sometimes(name, seen)
}

fn is(state: &State, status: &Status) -> bool {
    state.row(0).is_some_and(|row| row.status == *status)
}
