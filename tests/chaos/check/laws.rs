use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use crate::{
    delivery::{End, How},
    effects::Effect,
    history::{Became, Entry, Event, Verdict},
    key::{Key, Promise},
};

/// One key, and what happened to it.
#[derive(Debug)]
pub(super) struct Case<'a> {
    key: Key,
    /// When each delivery was sent, and to which process.
    sent: BTreeMap<u64, (u64, u32)>,
    answers: Vec<(u64, u64, &'a End)>,
    lost: BTreeSet<u64>,
    judgements: Vec<(Verdict, &'a Became)>,
    effects: &'a [Effect],
    rows: &'a [u64],
    unclosed: bool,
}

type Broken = (&'static str, String);

impl<'a> Case<'a> {
    pub(super) fn of(key: Key, entries: &[&'a Entry], evidence: &'a Evidence<'_>) -> Case<'a> {
        let mut case = Case {
            key,
            sent: BTreeMap::new(),
            answers: Vec::new(),
            lost: BTreeSet::new(),
            judgements: Vec::new(),
            effects: evidence.effects_of(key),
            rows: evidence.rows_of(key),
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
                Event::Judged { verdict, became, .. } => case.judgements.push((*verdict, became)),
                _ => {}
            }
        }
        case
    }

    pub(super) fn violations(&self) -> Vec<Broken> {
        let mut found = Vec::new();
        found.extend(self.comes_to_an_end());
        found.extend(self.is_not_refused_for_good());
        found.extend(self.has_no_effect_too_many());
        found.extend(self.has_its_effect());
        // A person may have it otherwise, and has said so.
        if !self.judgements.iter().any(|(_, became)| **became == Became::Overruled) {
            found.extend(self.completes_once());
            found.extend(self.runs_no_more_when_it_is_completed());
            found.extend(self.replays_one_value());
            found.extend(self.replays_what_was_accepted());
        }
        found.extend(self.has_growing_fences());
        found.extend(self.effects_are_of_those_who_ran());
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

    fn has_no_effect_too_many(&self) -> Option<Broken> {
        let frees = self
            .judgements
            .iter()
            .filter(|(verdict, became)| *verdict == Verdict::DidNot && !matches!(became, Became::Refused(_)))
            .count();
        let (effects, rows) = (self.effects.len(), self.rows.len());
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
            self.accepted().map(|(_, delivery, end)| format!("#{delivery}: {end}")).collect();
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
        let delivery = self.sent.keys().find(|delivery| later(delivery) && self.ran(**delivery))?;
        Some((law, format!("#{delivery} came later and had its effect")))
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
        if self.key.kind.promise() == Promise::Recorded {
            return None;
        }
        let mut claims: Vec<_> =
            self.effects.iter().map(|effect| (effect.attempt, effect.fence, effect.delivery)).collect();
        claims.sort_unstable();
        claims.dedup();
        let law = "a fence grows with each attempt";
        if let Some(pair) = claims.windows(2).find(|pair| pair[1].0 <= pair[0].0 || pair[1].1 <= pair[0].1) {
            return Some((law, format!("(attempt, fence, delivery): {pair:?}")));
        }
        // Whoever was sent for after an effect has claimed the key after that one.
        let is_after = |effect: &Effect, earlier: &Effect| {
            self.sent.get(&effect.delivery).is_some_and(|(sent, _)| *sent > earlier.at)
        };
        let (later, earlier) = self.effects.iter().find_map(|later| {
            let passed = |earlier: &&Effect| is_after(later, earlier) && later.fence <= earlier.fence;
            Some((later, self.effects.iter().find(passed)?))
        })?;
        Some((law, format!("{later} came after {earlier}")))
    }

    fn effects_are_of_those_who_ran(&self) -> Option<Broken> {
        let law = "an effect belongs to a delivery that ran";
        let mut deliveries = BTreeSet::new();
        for delivery in self.effects.iter().map(|effect| effect.delivery).chain(self.rows.iter().copied()) {
            if !self.sent.contains_key(&delivery) {
                return Some((law, format!("there was no #{delivery}")));
            }
            if !deliveries.insert(delivery) {
                return Some((law, format!("#{delivery} has two")));
            }
            if let Some((_, _, end)) = self.answers.iter().find(|(_, answered, _)| *answered == delivery)
                && end.ran_nothing()
            {
                return Some((law, format!("#{delivery} answered {end}")));
            }
        }
        let elsewhere = self
            .effects
            .iter()
            .find(|effect| self.sent.get(&effect.delivery).is_some_and(|(_, pid)| *pid != effect.pid))?;
        Some((law, format!("{elsewhere} is another process's")))
    }

    fn accepted(&self) -> impl Iterator<Item = &(u64, u64, &'a End)> {
        self.answers.iter().filter(|(_, _, end)| end.is_accepted())
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

/// Whether the completion of a delivery that was not acknowledged may stand all the same.
fn may_be_recorded(end: &End) -> bool {
    matches!(end, End::NotCommitted(_)) || end.is_refused_as("CompletionUnknown")
}
