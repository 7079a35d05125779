//! What an order promises of its phases.

use idem_runtime::Status;

use super::laws::{Broken, Case, frees};
use crate::{
    book::{Line, Phase, Step},
    history::Became,
    order::PhaseRow,
    person::FIRST_VALUE,
};

impl Case<'_> {
    pub(super) fn keeps_its_phases(&self) -> Vec<Broken> {
        let mut found = Vec::new();
        found.extend(self.charges_once());
        found.extend(self.has_the_effects_of_its_phases());
        found.extend(self.has_completed_its_phases());
        // A person may have it otherwise, and has said so.
        if !self.of_charge.iter().any(|(_, became)| **became == Became::Overruled) {
            found.extend(self.phase_rows.iter().find_map(|row| self.is_completed_by_its_last_run(row)));
        }
        found.extend(self.runs_each_phase_once_at_a_time());
        found
    }

    fn effects(&self, phase: Phase) -> impl Iterator<Item = &Line> {
        self.phases.iter().filter(move |line| line.step == Step::Phase(phase))
    }

    fn is_acknowledged(&self) -> bool {
        self.answers.iter().any(|(_, _, end)| end.is_done())
    }

    fn charges_once(&self) -> Option<Broken> {
        let (charges, frees) = (self.effects(Phase::Charge).count(), frees(&self.of_charge));
        (charges > 1 + frees).then(|| {
            ("at most one charge", format!("{charges} charges, and a person freed the phase {frees} times"))
        })
    }

    fn has_the_effects_of_its_phases(&self) -> Option<Broken> {
        let lacks = |phase: &Phase| self.is_acknowledged() && self.effects(*phase).next().is_none();
        let lacking = Phase::ALL.into_iter().find(lacks)?;
        Some(("what is acknowledged has happened in each phase", format!("no {}", lacking.name())))
    }

    fn has_completed_its_phases(&self) -> Option<Broken> {
        let is_completed = |phase: Phase| {
            self.phase_rows.iter().any(|row| row.phase == phase && row.status == Status::Completed)
        };
        let open = Phase::ALL.into_iter().find(|phase| self.is_acknowledged() && !is_completed(*phase))?;
        Some((
            "the phases of a completed job are completed",
            format!("{}: {:?}", open.name(), self.phase_rows),
        ))
    }

    /// Who runs a phase has taken the job over from all who ran it before: none of them completes it any more.
    fn is_completed_by_its_last_run(&self, row: &PhaseRow) -> Option<Broken> {
        let law = "a phase is completed by who held its job";
        let value = row.value.filter(|value| *value < FIRST_VALUE)?;
        let Some(by) = self.effects(row.phase).find(|line| line.delivery == value) else {
            return Some((law, format!("#{value} did, and ran no {}", row.phase.name())));
        };
        let later = self.effects(row.phase).find(|line| line.fence > by.fence)?;
        Some((law, format!("#{value} did, after {later}")))
    }

    fn runs_each_phase_once_at_a_time(&self) -> Option<Broken> {
        let twice = |line: &&Line| {
            let same = |other: &&Line| (other.step, other.delivery) == (line.step, line.delivery);
            self.phases.iter().filter(same).count() > 1
        };
        let line = self.phases.iter().find(twice)?;
        Some(("a run has each of its phases once", line.to_string()))
    }
}
