//! Histories of orders.

use idem_runtime::Status;

use super::{EFFECTS, Story, refused};
use crate::{
    book::{Phase, Step},
    history::{About, Became, Event, Verdict},
    key::Kind,
    order::PhaseRow,
};

impl Story {
    /// A phase of a delivery's run, up to its effect.
    fn acts(self, phase: Phase, delivery: u64, fence: i64) -> Story {
        self.line(Step::Phase(phase), delivery, 1, fence)
    }

    fn all_phases(self, delivery: u64, fence: i64) -> Story {
        Phase::ALL.into_iter().fold(self, |story, phase| story.acts(phase, delivery, fence))
    }

    /// The row of a phase in the end.
    fn left(mut self, phase: Phase, status: Status, value: Option<u64>) -> Story {
        self.orders.entry(self.key).or_default().push(PhaseRow { phase, status, value });
        self
    }

    fn completed(self, phase: Phase, value: u64) -> Story {
        self.left(phase, Status::Completed, Some(value))
    }

    fn of_charge(self, verdict: Verdict, became: Became) -> Story {
        let key = self.key;
        self.then(Event::Judged { key, about: About::Charge, verdict, became })
    }
}

/// An order of which a delivery did all, but for its own end.
fn whole() -> Story {
    Story::of(Kind::Order).sent(1).begun(1, 1, 10).all_phases(1, 10).line(Step::Effect, 1, 1, 10)
}

/// One whose charge came of the first delivery, and the rest of the second.
fn resumed() -> Story {
    let died = Story::of(Kind::Order).sent(1).begun(1, 1, 10).acts(Phase::Charge, 1, 10).died(1);
    let heir = died.sent(2).begun(2, 2, 20).acts(Phase::Reserve, 2, 20).acts(Phase::Receipt, 2, 20);
    heir.line(Step::Effect, 2, 2, 20).took_over(2)
}

fn rows(story: Story, values: [u64; 3]) -> Story {
    Phase::ALL.into_iter().zip(values).fold(story, |story, (phase, value)| story.completed(phase, value))
}

#[test]
fn an_order_that_goes_on_where_it_stopped_is_well() {
    rows(whole().executed(1).replayed(2, 1), [1, 1, 1]).is_well();
    rows(resumed().replayed(3, 2), [1, 2, 2]).is_well();
    // What has no claim may be done again, and the row is that of who did it last.
    let again = Story::of(Kind::Order).sent(1).begun(1, 1, 10).all_phases(1, 10).died(1);
    let again = again.sent(2).begun(2, 2, 20).acts(Phase::Receipt, 2, 20).line(Step::Effect, 2, 2, 20);
    rows(again.took_over(2), [1, 1, 2]).is_well();
}

#[test]
fn a_second_charge_is_found_unless_a_person_freed_it() {
    let twice = |story: Story| {
        let story = story.sent(2).begun(2, 2, 20).all_phases(2, 20).line(Step::Effect, 2, 2, 20);
        rows(story.took_over(2), [2, 2, 2])
    };
    let charged = || Story::of(Kind::Order).sent(1).begun(1, 1, 10).acts(Phase::Charge, 1, 10).died(1);
    twice(charged()).breaks("at most one charge");
    twice(charged().of_charge(Verdict::DidNot, Became::Changed)).is_well();
    twice(charged().freed()).breaks("at most one charge");
}

#[test]
fn an_acknowledged_order_without_one_of_its_effects_is_found() {
    for phase in Phase::ALL {
        let mut story = rows(whole().executed(1), [1, 1, 1]);
        story.lines.retain(|line| line.step != Step::Phase(phase));
        story.breaks("what is acknowledged has happened in each phase");
    }
}

#[test]
fn a_completed_order_with_an_open_phase_is_found() {
    let law = "the phases of a completed job are completed";
    let story = || whole().executed(1).completed(Phase::Charge, 1).completed(Phase::Reserve, 1);
    story().breaks(law);
    story().left(Phase::Receipt, Status::NeedsReview, None).breaks(law);
}

#[test]
fn a_phase_that_a_zombie_completed_is_found() {
    let law = "a phase is completed by who held its job";
    let story = || {
        let zombie = Story::of(Kind::Order).sent(1).begun(1, 1, 10).acts(Phase::Charge, 1, 10);
        let zombie = zombie.acts(Phase::Reserve, 1, 10).sent(2).begun(2, 2, 20);
        let heir =
            zombie.acts(Phase::Reserve, 2, 20).acts(Phase::Receipt, 2, 20).line(Step::Effect, 2, 2, 20);
        heir.took_over(2).answered(1, refused("ClaimLost", true))
    };
    rows(story(), [1, 2, 2]).is_well();
    rows(story(), [1, 1, 2]).breaks(law);
    rows(story(), [1, 2, 7]).breaks(law);
    let said = story().of_charge(Verdict::Happened(1 << 40), Became::Changed);
    rows(said, [1 << 40, 2, 2]).is_well();
}

#[test]
fn a_zombie_that_passes_a_phase_is_found() {
    // The second delivery begins before the first one has come to its effect.
    let zombie = || {
        let heir = Story::of(Kind::Order).sent(1).begun(1, 1, 10).sent(2).begun(2, 2, 20).sent(3);
        heir.acts(Phase::Charge, 1, 10).sent(4)
    };
    zombie().is_well();
    zombie().acts(Phase::Reserve, 1, 10).breaks("who was taken over passes no phase");
    zombie().line(Step::Effect, 1, 1, 10).breaks("who was taken over passes no phase");
    zombie().completed(Phase::Charge, 1).breaks("a phase is completed by who held its job");
}

#[test]
fn a_phase_that_a_run_had_twice_is_found() {
    let twice = rows(whole().acts(Phase::Receipt, 1, 10).executed(1), [1, 1, 1]);
    twice.breaks("a run has each of its phases once");
}

#[test]
fn an_order_whose_phase_was_refused_has_begun() {
    let reviewed =
        || Story::of(Kind::Order).sent(1).begun(1, 1, 10).answered(1, refused("NeedsReview", true));
    reviewed().is_well();
    let outside = Story::of(Kind::Order).sent(1).begun(1, 1, 10).answered(1, refused("NeedsReview", false));
    outside.breaks(EFFECTS);
}
