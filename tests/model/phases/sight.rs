//! What a configuration has to come to somewhere.

use idem_runtime::Status;
use idem_tests::table::Row;
use stateright::Property;

use super::{Phased, history::Life, job::Part, state::State, worker::At};

#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    /// An heir completes the job.
    CompletedByAnHeir,
    /// A zombie is in a phase beside its heir.
    Zombie,
    /// The charge needs review.
    InReview,
    /// The job is completed after a second charge, which a person allowed.
    ChargedAgain,
    /// The mail was sent twice in one life.
    TwoMails,
    /// A former life left a phase, and the job lives.
    LeftOver,
    /// A row is gone.
    Gone,
    /// A phase ends though a person has released its job.
    EndsLate,
}

impl Sight {
    pub(super) fn property(self) -> Property<Phased> {
        match self {
            Self::CompletedByAnHeir => sometimes("an heir completes the job", |_, state| {
                row(state, Part::Job).is_some_and(|row| row.status == Status::Completed && row.takeovers > 0)
            }),
            Self::Zombie => sometimes("a zombie is in a phase beside its heir", |_, state| {
                let fallen = |owner| state.history.holder.is_some_and(|holder| holder != owner);
                let mut workers = state.workers.iter();
                workers.any(|worker| is_inside(&worker.at) && worker.of.is_some_and(|of| fallen(of.owner)))
            }),
            Self::InReview => sometimes("the charge needs review", |_, state| {
                row(state, Part::Charge).is_some_and(|row| row.status == Status::NeedsReview)
            }),
            Self::ChargedAgain => sometimes("a job is completed after a second charge", |_, state| {
                let completed = row(state, Part::Job).is_some_and(|row| row.status == Status::Completed);
                completed && last(state).charges == 2
            }),
            Self::TwoMails => sometimes("the mail is sent twice", |_, state| last(state).mails == 2),
            Self::LeftOver => sometimes("a former life left a phase", |_, state| {
                let birth = row(state, Part::Job).map(|row| row.created_at.to_string());
                row(state, Part::Charge).is_some_and(|row| birth.is_some() && row.fingerprint != birth)
            }),
            Self::Gone => sometimes("a row is gone", |_, state| state.table.floor > 0),
            Self::EndsLate => sometimes("a phase ends after its job was released", |_, state| {
                let released = row(state, Part::Job).is_some_and(|row| row.status == Status::Released);
                released && state.workers.iter().any(|worker| matches!(worker.at, At::Clear))
            }),
        }
    }
}

fn sometimes(name: &'static str, seen: fn(&Phased, &State) -> bool) -> Property<Phased> {
    Property::sometimes(name, seen)
}

fn row(state: &State, part: Part) -> Option<&Row> {
    state.table.row(part.key())
}

fn last(state: &State) -> &Life {
    &state.history.lives[state.history.life()]
}

fn is_inside(at: &At) -> bool {
    matches!(at, At::Held(_) | At::Charged(_) | At::Clear | At::Recording(_))
}
