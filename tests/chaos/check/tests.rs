//! Histories that were made up: those that may happen, and those in which something is wrong.

mod phases;

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, violations};
use crate::{
    book::{Book, Line, Step},
    delivery::{Delivery, End, Fate, How},
    history::{About, Became, Entry, Event, History, Verdict},
    key::{Key, Kind},
    order::PhaseRow,
};

/// One key's story, told in order.
struct Story {
    key: Key,
    entries: Vec<Entry>,
    lines: Vec<Line>,
    rows: BTreeMap<u64, Vec<u64>>,
    orders: BTreeMap<Key, Vec<PhaseRow>>,
    unclosed: BTreeSet<Key>,
}

impl Story {
    fn of(kind: Kind) -> Story {
        Story {
            key: Key { kind, number: 1 },
            entries: Vec::new(),
            lines: Vec::new(),
            rows: BTreeMap::new(),
            orders: BTreeMap::new(),
            unclosed: BTreeSet::new(),
        }
    }

    fn then(mut self, event: Event) -> Story {
        self.entries.push(Entry { at: self.entries.len() as u64, event });
        self
    }

    fn sent(self, id: u64) -> Story {
        let delivery = Delivery { id, key: self.key, before: 0, after: 0, fate: Fate::Succeeds };
        self.then(Event::Sent { delivery, worker: 0, pid: 1 })
    }

    fn answered(self, delivery: u64, end: End) -> Story {
        let key = self.key;
        self.then(Event::Answered { key, delivery, end })
    }

    fn executed(self, id: u64) -> Story {
        self.answered(id, End::Done { how: How::Executed, value: id })
    }

    fn took_over(self, id: u64) -> Story {
        self.answered(id, End::Done { how: How::TookOver, value: id })
    }

    fn replayed(self, id: u64, value: u64) -> Story {
        self.sent(id).answered(id, End::Done { how: How::Replayed, value })
    }

    fn refused(self, id: u64, kind: &str) -> Story {
        self.answered(id, refused(kind, false))
    }

    fn died(self, delivery: u64) -> Story {
        let key = self.key;
        self.then(Event::Unanswered { key, delivery })
    }

    fn judged(self, verdict: Verdict, became: Became) -> Story {
        let key = self.key;
        self.then(Event::Judged { key, about: About::Job, verdict, became })
    }

    fn freed(self) -> Story {
        self.judged(Verdict::DidNot, Became::Changed)
    }

    /// A run of a delivery under a claim, up to its effect.
    fn effect(self, delivery: u64, attempt: u32, fence: i64) -> Story {
        self.line(Step::Begin, delivery, attempt, fence).line(Step::Effect, delivery, attempt, fence)
    }

    /// One that came to no effect yet.
    fn begun(self, delivery: u64, attempt: u32, fence: i64) -> Story {
        self.line(Step::Begin, delivery, attempt, fence)
    }

    fn line(mut self, step: Step, delivery: u64, attempt: u32, fence: i64) -> Story {
        let at = self.entries.len() as u64;
        self.lines.push(Line { step, key: self.key, delivery, pid: 1, attempt, fence, at });
        self
    }

    fn row(mut self, delivery: u64) -> Story {
        self.rows.entry(self.key.number).or_default().push(delivery);
        self
    }

    fn wedged(mut self) -> Story {
        self.unclosed.insert(self.key);
        self
    }

    /// The promises that were not kept.
    fn broken(&self) -> Vec<&'static str> {
        let history = History::of(self.entries.clone());
        let book = Book::of(&self.lines);
        let unclosed = self.unclosed.clone();
        let (rows, orders) = (&self.rows, &self.orders);
        let evidence = Evidence { history: &history, book: &book, rows, orders, unclosed };
        let found = violations(&evidence);
        for violation in &found {
            assert!(evidence.explain(violation).contains(violation.law));
        }
        found.into_iter().map(|violation| violation.law).collect()
    }

    fn is_well(&self) {
        assert_eq!(self.broken(), [""; 0], "{:#?}", self.entries);
    }

    fn breaks(&self, law: &str) {
        assert!(self.broken().contains(&law), "{:?}", self.broken());
    }
}

fn refused(kind: &str, returned: bool) -> End {
    End::Refused { kind: kind.to_owned(), retryable: true, retry_after: None, returned }
}

/// A job that ran once, as all should.
fn plain(kind: Kind) -> Story {
    Story::of(kind).sent(1).effect(1, 1, 10).executed(1)
}

const CLAIMED: [Kind; 8] = [
    Kind::Charge,
    Kind::Report,
    Kind::Invoice,
    Kind::Ship,
    Kind::Rebuild,
    Kind::Notify,
    Kind::Press,
    Kind::Transfer,
];

#[test]
fn what_runs_once_and_is_replayed_is_well() {
    for kind in CLAIMED {
        plain(kind).replayed(2, 1).is_well();
    }
    Story::of(Kind::Mail).sent(1).effect(1, 1, 0).executed(1).replayed(2, 1).is_well();
    Story::of(Kind::Credit).sent(1).row(1).executed(1).replayed(2, 1).is_well();
}

#[test]
fn a_death_before_the_answer_is_well() {
    for kind in CLAIMED {
        Story::of(kind).sent(1).effect(1, 1, 10).died(1).replayed(2, 1).is_well();
    }
    Story::of(Kind::Credit).sent(1).row(1).died(1).replayed(2, 1).is_well();
    let mail = Story::of(Kind::Mail).sent(1).effect(1, 1, 0).died(1).sent(2).effect(2, 1, 0).executed(2);
    mail.replayed(3, 2).is_well();
}

#[test]
fn a_second_effect_of_a_charge_is_found() {
    let twice = Story::of(Kind::Charge).sent(1).effect(1, 1, 10).died(1).sent(2).effect(2, 2, 20).executed(2);
    twice.breaks("at most one effect");
}

#[test]
fn a_person_frees_one_effect_and_no_more() {
    let freed = Story::of(Kind::Charge).sent(1).freed().effect(1, 1, 10).died(1).sent(2).effect(2, 2, 20);
    let freed = freed.executed(2);
    freed.is_well();
    freed.sent(3).effect(3, 3, 30).died(3).breaks("at most one effect");
    let unheard = Became::Unknown("no answer".to_owned());
    let freed = Story::of(Kind::Charge).sent(1).effect(1, 1, 10).judged(Verdict::DidNot, unheard).died(1);
    freed.sent(2).effect(2, 2, 20).executed(2).is_well();
    let unfreed = Became::Refused("its holder is alive".to_owned());
    let unfreed = Story::of(Kind::Charge).sent(1).effect(1, 1, 10).judged(Verdict::DidNot, unfreed).died(1);
    unfreed.sent(2).effect(2, 2, 20).executed(2).breaks("at most one effect");
}

#[test]
fn an_effect_that_an_execution_had_twice_is_found() {
    for kind in CLAIMED {
        Story::of(kind).sent(1).effect(1, 1, 10).effect(1, 1, 10).executed(1).breaks(EFFECTS);
    }
}

const EFFECTS: &str = "an effect belongs to a delivery that ran";

#[test]
fn an_effect_of_nobody_is_found() {
    let mut elsewhere = plain(Kind::Ship);
    elsewhere.lines[0].pid = 2;
    elsewhere.breaks(EFFECTS);
    plain(Kind::Ship).effect(7, 2, 20).breaks(EFFECTS);
    let mut stray = Story::of(Kind::Ship).effect(7, 2, 20);
    stray.breaks("an effect belongs to a delivery");
    stray = Story::of(Kind::Credit).row(7);
    stray.breaks("an effect belongs to a delivery");
}

#[test]
fn an_effect_of_one_who_was_refused_is_found() {
    for kind in ["InProgress", "NeedsReview", "Store"] {
        let story = Story::of(Kind::Ship).sent(1).sent(2).effect(2, 1, 10).refused(2, kind);
        story.effect(1, 2, 20).executed(1).breaks(EFFECTS);
    }
    plain(Kind::Ship).sent(2).effect(2, 2, 20).replayed(2, 1).breaks(EFFECTS);
}

#[test]
fn a_zombie_that_is_refused_is_well() {
    let zombie = || Story::of(Kind::Ship).sent(1).effect(1, 1, 10).sent(2).effect(2, 2, 20).took_over(2);
    zombie().answered(1, refused("ClaimLost", true)).replayed(3, 2).is_well();
    zombie().answered(1, End::Failed).replayed(3, 2).is_well();
}

#[test]
fn a_zombie_that_does_not_hear_that_its_claim_is_lost_is_found() {
    let deaf =
        Story::of(Kind::Ship).sent(1).effect(1, 1, 10).sent(2).effect(2, 2, 20).took_over(2).executed(1);
    deaf.breaks("one completion is accepted");
    deaf.replayed(3, 2).breaks("a replay gives what was accepted");
}

#[test]
fn a_completion_beside_a_persons_is_found() {
    let story =
        || Story::of(Kind::Charge).sent(1).effect(1, 1, 10).judged(Verdict::Happened(99), Became::Changed);
    story().refused(1, "ClaimLost").replayed(2, 99).is_well();
    story().executed(1).breaks("one completion is accepted");
}

#[test]
fn a_value_that_was_denied_and_is_replayed_is_found() {
    let story = |end| Story::of(Kind::Ship).sent(1).effect(1, 1, 10).answered(1, end).replayed(2, 1);
    for end in [refused("ClaimLost", true), End::Failed, End::Panicked] {
        story(end).breaks("what was not accepted is not replayed");
    }
    story(refused("CompletionUnknown", true)).is_well();
}

#[test]
fn replays_that_differ_are_found() {
    plain(Kind::Ship).replayed(2, 1).replayed(3, 2).breaks("a key has one value");
    plain(Kind::Ship).replayed(2, 7).breaks("a replay gives what a run returned");
    let mails = Story::of(Kind::Mail).sent(1).sent(2).effect(1, 1, 0).effect(2, 1, 0).executed(1).executed(2);
    mails.replayed(3, 1).is_well();
    plain(Kind::Ship)
        .answered(1, End::Done { how: How::Executed, value: 2 })
        .breaks("a run answers with its own value");
}

#[test]
fn a_success_without_an_effect_is_found() {
    for kind in CLAIMED.into_iter().chain([Kind::Mail, Kind::Credit]) {
        Story::of(kind).sent(1).executed(1).breaks("what is acknowledged has happened");
    }
    let other = Story::of(Kind::Mail).sent(1).sent(2).effect(1, 1, 0).executed(1).executed(2);
    other.breaks("what is acknowledged has happened");
}

#[test]
fn a_run_after_the_end_is_found() {
    let law = "a completed key runs no more";
    for kind in [Kind::Ship, Kind::Mail] {
        plain(kind).sent(2).effect(2, 2, 20).executed(2).breaks(law);
        plain(kind).sent(2).effect(2, 2, 20).died(2).breaks(law);
        plain(kind).sent(2).answered(2, End::Failed).breaks(law);
    }
    Story::of(Kind::Credit).sent(1).row(1).executed(1).sent(2).row(2).died(2).breaks(law);
    let unheard = End::NotCommitted("the connection is gone".to_owned());
    Story::of(Kind::Credit).sent(1).row(1).executed(1).sent(2).answered(2, unheard).is_well();
    // A zombie was there before.
    let zombie = Story::of(Kind::Ship).sent(1).sent(2).effect(2, 2, 20).took_over(2).effect(1, 1, 10);
    zombie.answered(1, refused("ClaimLost", true)).is_well();
}

#[test]
fn rows_are_counted() {
    let story = || Story::of(Kind::Credit).sent(1).sent(2).row(1);
    story().row(2).executed(1).breaks("one row");
    let unheard = End::NotCommitted("the connection is gone".to_owned());
    story().answered(1, unheard).answered(2, End::Done { how: How::Replayed, value: 1 }).is_well();
    Story::of(Kind::Credit).sent(1).effect(1, 1, 1).row(1).executed(1).breaks("one row");
}

#[test]
fn fences_that_do_not_grow_are_found() {
    let law = "a fence grows with each attempt";
    let story = |fence| Story::of(Kind::Ship).sent(1).effect(1, 1, 10).died(1).sent(2).effect(2, 2, fence);
    story(11).took_over(2).is_well();
    story(10).took_over(2).breaks(law);
    story(9).took_over(2).breaks(law);
    Story::of(Kind::Ship).sent(1).effect(1, 1, 10).died(1).sent(2).effect(2, 1, 11).took_over(2).breaks(law);
    // The later one has the lower attempt and the lower fence.
    let back = Story::of(Kind::Ship).sent(1).effect(1, 2, 20).died(1).sent(2).effect(2, 1, 10).took_over(2);
    back.breaks(law);
}

#[test]
fn a_key_without_end_is_found() {
    let story = Story::of(Kind::Ship).sent(1).refused(1, "InProgress").wedged();
    story.breaks("no key is wedged");
    let end = End::Refused {
        kind: "ReplayUnreadable".to_owned(),
        retryable: false,
        retry_after: None,
        returned: false,
    };
    Story::of(Kind::Ship).sent(1).answered(1, end).breaks("no job is refused for good");
}

#[test]
fn a_completion_after_a_later_claim_is_found() {
    let law = "the last claim completes";
    let late = || Story::of(Kind::Ship).sent(1).effect(1, 1, 10).sent(2).begun(2, 2, 20);
    late().executed(1).breaks(law);
    late().died(1).replayed(3, 1).breaks(law);
    late().line(Step::Effect, 2, 2, 20).took_over(2).answered(1, refused("ClaimLost", true)).is_well();
}

#[test]
fn a_second_run_of_a_charge_is_found_before_its_effect() {
    Story::of(Kind::Charge)
        .sent(1)
        .effect(1, 1, 10)
        .died(1)
        .sent(2)
        .begun(2, 2, 20)
        .breaks("at most one run");
    // That may have begun without its effect, and was free again.
    let invoice = Story::of(Kind::Invoice).sent(1).begun(1, 1, 10).answered(1, End::Failed).sent(2);
    invoice.effect(2, 2, 20).executed(2).is_well();
}

#[test]
fn a_probe_that_is_not_asked_is_found() {
    let law = "no run where the effect is to be seen";
    let again = || Story::of(Kind::Transfer).sent(1).effect(1, 1, 10).died(1).sent(2);
    again().effect(2, 2, 20).took_over(2).breaks(law);
    again().begun(2, 2, 20).died(2).breaks(law);
    let probed = || again().answered(2, End::Done { how: How::Probed, value: 1 });
    probed().replayed(3, 1).is_well();
    probed().answered(1, refused("ClaimLost", true)).replayed(3, 1).is_well();
    probed().executed(1).breaks("one completion is accepted");
    // It came when nobody could see it yet.
    let late = Story::of(Kind::Transfer).sent(1).begun(1, 1, 10).sent(2).effect(2, 2, 20).took_over(2);
    late.line(Step::Effect, 1, 1, 10).answered(1, refused("ClaimLost", true)).is_well();
}
