use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use crate::{
    book::Line,
    delivery::{End, How},
    history::{About, Became, Entry, Event, Verdict},
    key::{Key, Kind, Promise},
    order::PhaseRow,
};

/// One key, and what happened to it.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) key: Key,
    /// When each delivery was sent, and to which process.
    sent: BTreeMap<u64, (u64, u32)>,
    pub(super) answers: Vec<(u64, u64, &'a End)>,
    lost: BTreeSet<u64>,
    judgements: Vec<(Verdict, &'a Became)>,
    /// Those that are about the charge of an order.
    pub(super) of_charge: Vec<(Verdict, &'a Became)>,
    pub(super) begins: &'a [Line],
    pub(super) effects: &'a [Line],
    rows: &'a [u64],
    pub(super) phases: &'a [Line],
    pub(super) phase_rows: &'a [PhaseRow],
    unclosed: bool,
}

pub(super) type Broken = (&'static str, String);

impl<'a> Case<'a> {
    pub(super) fn of(key: Key, entries: &[&'a Entry], evidence: &'a Evidence<'_>) -> Case<'a> {
        let mut case = Case {
            key,
            sent: BTreeMap::new(),
            answers: Vec::new(),
            lost: BTreeSet::new(),
            judgements: Vec::new(),
            of_charge: Vec::new(),
            begins: evidence.begins_of(key),
            effects: evidence.effects_of(key),
            rows: evidence.rows_of(key),
            phases: evidence.phases_of(key),
            phase_rows: evidence.phase_rows_of(key),
            unclosed: evidence.unclosed.contains(&key),
        };
        for entry in entries {
            match &entry.event {
                Event::Sent { delivery, pid, .. } => {
                    case.sent.insert(delivery.id, (entry.at, *pid));
                }
                Event::Answered { delivery, end, .. } => case.answers.push((entry.at, *delivery, end)),
                Event::Unanswered { delivery, .. } => {
                    case.lost.insert(*delivery);
                }
                Event::Judged { about: About::Job, verdict, became, .. } => {
                    case.judgements.push((*verdict, became));
                }
                Event::Judged { about: About::Charge, verdict, became, .. } => {
                    case.of_charge.push((*verdict, became));
                }
                _ => {}
            }
        }
        case
    }

    pub(super) fn violations(&self) -> Vec<Broken> {
        let mut found = Vec::new();
        found.extend(self.comes_to_an_end());
        found.extend(self.is_not_refused_for_good());
        found.extend(self.has_no_run_too_many());
        found.extend(self.has_no_effect_too_many());
        found.extend(self.does_not_run_where_an_effect_is_to_be_seen());
        found.extend(self.has_its_effect());
        // A person may have it otherwise, and has said so.
        if !self.judgements.iter().any(|(_, became)| **became == Became::Overruled) {
            found.extend(self.completes_once());
            found.extend(self.runs_no_more_when_it_is_completed());
            found.extend(self.replays_one_value());
            found.extend(self.replays_what_was_accepted());
            found.extend(self.is_completed_by_its_last_claim());
        }
        found.extend(self.has_growing_fences());
        found.extend(self.runs_are_of_those_who_ran());
        if self.key.kind == Kind::Order {
            found.extend(self.keeps_its_phases());
        }
        found
    }

    fn comes_to_an_end(&self) -> Option<Broken> {
        let unanswered: Vec<_> = self
            .sent
            .keys()
            .filter(|sent| {
                !self.lost.contains(sent) && !self.answers.iter().any(|(_, answered, _)| answered == *sent)
            })
            .collect();
        if self.unclosed {
            return Some(("no key is wedged", format!("deliveries without an answer: {unanswered:?}")));
        }
        None
    }

    /// Nothing of what is delivered here deserves an answer that no repeat can change.
    fn is_not_refused_for_good(&self) -> Option<Broken> {
        let refused = self.answers.iter().find_map(|(_, delivery, end)| match end {
            End::Refused { retryable: false, .. } => Some(format!("#{delivery}: {end}")),
            _ => None,
        });
        refused.map(|what| ("no job is refused for good", what))
    }

    fn has_no_run_too_many(&self) -> Option<Broken> {
        let (begins, frees) = (self.begins.len(), self.frees());
        (matches!(self.key.kind, Kind::Charge | Kind::Report) && begins > 1 + frees)
            .then(|| ("at most one run", format!("{begins} runs, and a person freed it {frees} times")))
    }

    fn has_no_effect_too_many(&self) -> Option<Broken> {
        let (effects, rows, frees) = (self.effects.len(), self.rows.len(), self.frees());
        match self.key.kind.promise() {
            Promise::AtMostOnce if effects > 1 + frees => Some((
                "at most one effect",
                format!("{effects} effects, and a person freed it {frees} times"),
            )),
            Promise::RowOnce if rows > 1 => Some(("one row", format!("{rows} rows"))),
            Promise::RowOnce if effects > 0 => Some(("one row", format!("{effects} effects besides"))),
            _ => None,
        }
    }

    /// Whoever is asked before a run says so if there was an effect when the run was sent for.
    fn does_not_run_where_an_effect_is_to_be_seen(&self) -> Option<Broken> {
        if self.key.kind.promise() != Promise::Asked || self.frees() > 0 {
            return None;
        }
        let seen_by = |begin: &Line| {
            let (sent, _) = self.sent.get(&begin.delivery)?;
            self.effects.iter().find(|effect| effect.delivery != begin.delivery && effect.at < *sent)
        };
        let (begin, effect) = self.begins.iter().find_map(|begin| Some((begin, seen_by(begin)?)))?;
        Some(("no run where the effect is to be seen", format!("{begin} after {effect}")))
    }

    /// How often a person freed the key, or may have.
    fn frees(&self) -> usize {
        frees(&self.judgements)
    }

    fn has_its_effect(&self) -> Option<Broken> {
        let is_acknowledged = self.answers.iter().any(|(_, _, end)| end.is_done());
        let happened =
            if self.key.kind.promise() == Promise::RowOnce { self.rows.len() } else { self.effects.len() };
        if is_acknowledged && happened == 0 {
            return Some(("what is acknowledged has happened", "no effect".to_owned()));
        }
        let (_, delivery, end) = self.accepted().find(|(_, delivery, _)| !self.ran(*delivery))?;
        Some(("what is acknowledged has happened", format!("#{delivery} answered {end} and had no effect")))
    }

    fn completes_once(&self) -> Option<Broken> {
        if self.key.kind.promise() == Promise::Recorded {
            return None;
        }
        let mut completions: Vec<String> =
            self.completing().map(|(_, delivery, end)| format!("#{delivery}: {end}")).collect();
        let by_a_person = self
            .judgements
            .iter()
            .filter(|(verdict, became)| **became == Became::Changed && *verdict != Verdict::DidNot);
        completions.extend(by_a_person.map(|(verdict, _)| format!("{verdict:?} by a person")));
        (completions.len() > 1).then(|| ("one completion is accepted", completions.join(" and ")))
    }

    fn runs_no_more_when_it_is_completed(&self) -> Option<Broken> {
        let law = "a completed key runs no more";
        let acknowledged =
            self.answers.iter().filter(|(_, _, end)| end.is_done()).map(|(at, ..)| *at).min()?;
        let later = |delivery: &u64| self.sent.get(delivery).is_some_and(|(sent, _)| *sent > acknowledged);
        if let Some((_, delivery, end)) =
            self.answers.iter().find(|(_, delivery, end)| later(delivery) && end.tells_of_a_run())
        {
            return Some((law, format!("#{delivery} came later and answered {end}")));
        }
        let is_there =
            |delivery: u64| self.ran(delivery) || self.begins.iter().any(|begin| begin.delivery == delivery);
        let delivery = self.sent.keys().find(|delivery| later(delivery) && is_there(**delivery))?;
        Some((law, format!("#{delivery} came later and ran")))
    }

    fn replays_one_value(&self) -> Option<Broken> {
        let replays: BTreeSet<u64> = self.replays().collect();
        if replays.len() > 1 {
            return Some(("a key has one value", format!("replays gave {replays:?}")));
        }
        let replay = *replays.first()?;
        let judged = self.judgements.iter().any(|(verdict, became)| {
            *verdict == Verdict::Happened(replay) && !matches!(became, Became::Refused(_))
        });
        if !judged && !self.ran(replay) {
            return Some(("a replay gives what a run returned", format!("nobody returned {replay}")));
        }
        // What was found by asking counts, whatever its own run was told.
        if self.is_probed() {
            return None;
        }
        let answered = self.answers.iter().find(|(_, delivery, _)| *delivery == replay);
        let denied = answered.filter(|(_, _, end)| !end.is_done() && !may_be_recorded(end));
        denied.map(|(_, delivery, end)| {
            ("what was not accepted is not replayed", format!("#{delivery} answered {end}, and is replayed"))
        })
    }

    fn replays_what_was_accepted(&self) -> Option<Broken> {
        if let Some((_, delivery, end)) = self
            .accepted()
            .find(|(_, delivery, end)| !matches!(end, End::Done { value, .. } if value == delivery))
        {
            return Some(("a run answers with its own value", format!("#{delivery} answered {end}")));
        }
        // Two that record after their effect each get their own, and the first one stays.
        if self.key.kind.promise() == Promise::Recorded {
            return None;
        }
        let replay = self.replays().next()?;
        let (_, delivery, end) = self.accepted().find(|(_, delivery, _)| *delivery != replay)?;
        Some((
            "a replay gives what was accepted",
            format!("#{delivery} answered {end}, and replays give {replay}"),
        ))
    }

    fn has_growing_fences(&self) -> Option<Broken> {
        if !self.is_claimed() {
            return None;
        }
        let law = "a fence grows with each attempt";
        let mut claims: Vec<_> = self.begins.iter().map(|begin| (begin.attempt, begin.fence)).collect();
        claims.sort_unstable();
        if let Some(pair) = claims.windows(2).find(|pair| pair[1].0 <= pair[0].0 || pair[1].1 <= pair[0].1) {
            return Some((law, format!("(attempt, fence): {pair:?}")));
        }
        // Whoever was sent for after a run had begun has claimed the key after that one.
        let passed = |later: &Line, earlier: &Line| {
            let is_later = self.sent.get(&later.delivery).is_some_and(|(sent, _)| *sent > earlier.at);
            is_later && later.fence <= earlier.fence
        };
        let (later, earlier) = self
            .begins
            .iter()
            .find_map(|later| Some((later, self.begins.iter().find(|earlier| passed(later, earlier))?)))?;
        Some((law, format!("{later} came after {earlier}")))
    }

    /// Nobody completes a key that somebody else has claimed since.
    fn is_completed_by_its_last_claim(&self) -> Option<Broken> {
        if !self.is_claimed() || self.is_probed() {
            return None;
        }
        let completed = self.accepted().map(|(_, delivery, _)| *delivery).next().or(self.replays().next())?;
        let completed = self.begins.iter().find(|begin| begin.delivery == completed)?;
        let later = self.begins.iter().find(|begin| begin.fence > completed.fence)?;
        Some(("the last claim completes", format!("#{} did, after {later}", completed.delivery)))
    }

    /// Whether its runs hold a claim that lasts without them.
    fn is_claimed(&self) -> bool {
        matches!(self.key.kind.promise(), Promise::AtMostOnce | Promise::AtLeastOnce | Promise::Asked)
    }

    fn runs_are_of_those_who_ran(&self) -> Option<Broken> {
        let law = "an effect belongs to a delivery that ran";
        let of_lines = |lines: &[Line]| lines.iter().map(|line| line.delivery).collect::<Vec<_>>();
        for deliveries in [of_lines(self.begins), of_lines(self.effects), self.rows.to_vec()] {
            let mut seen = BTreeSet::new();
            for delivery in deliveries {
                if !self.sent.contains_key(&delivery) {
                    return Some((law, format!("there was no #{delivery}")));
                }
                if !seen.insert(delivery) {
                    return Some((law, format!("#{delivery} has two")));
                }
                if let Some((_, _, end)) = self.answers.iter().find(|(_, answered, _)| *answered == delivery)
                    && end.ran_nothing()
                {
                    return Some((law, format!("#{delivery} answered {end}")));
                }
            }
        }
        let elsewhere = self
            .begins
            .iter()
            .chain(self.effects)
            .find(|line| self.sent.get(&line.delivery).is_some_and(|(_, pid)| *pid != line.pid))?;
        Some((law, format!("{elsewhere} is another process's")))
    }

    fn accepted(&self) -> impl Iterator<Item = &(u64, u64, &'a End)> {
        self.answers.iter().filter(|(_, _, end)| end.is_accepted())
    }

    /// Answers that completed the key.
    fn completing(&self) -> impl Iterator<Item = &(u64, u64, &'a End)> {
        self.answers
            .iter()
            .filter(|(_, _, end)| end.is_accepted() || matches!(end, End::Done { how: How::Probed, .. }))
    }

    fn is_probed(&self) -> bool {
        self.completing().any(|(_, _, end)| !end.is_accepted()) || self.may_be_probed()
    }

    /// Whether it may have been completed by one who asked, and could not say so any more.
    fn may_be_probed(&self) -> bool {
        self.key.kind.promise() == Promise::Asked && self.accepted().next().is_none()
    }

    fn replays(&self) -> impl Iterator<Item = u64> {
        self.answers.iter().filter_map(|(_, _, end)| match end {
            End::Done { how: How::Replayed | How::Probed, value } => Some(*value),
            _ => None,
        })
    }

    /// Whether the effect of a delivery is there.
    fn ran(&self, delivery: u64) -> bool {
        self.effects.iter().any(|effect| effect.delivery == delivery) || self.rows.contains(&delivery)
    }
}

/// How many of these free something, or may have.
pub(super) fn frees(judgements: &[(Verdict, &Became)]) -> usize {
    let is_free = |became: &Became| !matches!(became, Became::Refused(_));
    let freed = judgements.iter().filter(|(verdict, became)| *verdict == Verdict::DidNot && is_free(became));
    freed.count()
}

/// Whether the completion of a delivery that was not acknowledged may stand all the same.
fn may_be_recorded(end: &End) -> bool {
    matches!(end, End::NotCommitted(_)) || end.is_refused_as("CompletionUnknown")
}
